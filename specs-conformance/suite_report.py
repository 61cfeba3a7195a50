# SPDX-License-Identifier: Apache-2.0
"""What became of each requirement in a run of the suite, as JSON or as a page."""
import html
import json

import catalogue

NOT_EXERCISED, NOT_TESTABLE = "not exercised", "not testable"


def rows(results, documents=None):
    """One for each requirement of the catalogue, in its order."""
    by_requirement = {}
    for name, result in results.items():
        for requirement in result["requirements"]:
            by_requirement.setdefault(requirement, []).append((name, result))
    for document in documents or catalogue.load():
        for one in document.requirements:
            yield row(document, one, by_requirement.get(one["id"], []))


def row(document, one, found):
    passed = [name for name, result in found if result["outcome"] == "passed"]
    failed = {name: result["why"] for name, result in found if result["outcome"] == "failed"}
    why = ""
    if failed:
        state = "failed"
    elif passed:
        state = "passed"
    else:
        state, why = unseen(one)
    return {"id": one["id"], "document": document.file, "section": catalogue.section_of(one["id"]),
            "keyword": one["keyword"], "place": one["place"], "text": one["text"], "state": state,
            "why": why, "checks": len(found), "passed": len(passed), "failed": failed}


def unseen(one):
    """The suite has nothing for it: the reason, where one is known."""
    if one["status"] in ("elsewhere", "refused"):
        return NOT_TESTABLE, one["why"]
    if one["status"] == "later":
        return NOT_EXERCISED, f"of a later part: {one['part']}"
    if one.get("untestable"):
        return NOT_TESTABLE, one["untestable"]
    return NOT_EXERCISED, "It shows in no answer of an adapter; checks and tests of a runtime show it."


def counts(made):
    return {state: sum(one["state"] == state for one in made)
            for state in ("passed", "failed", NOT_EXERCISED, NOT_TESTABLE)}


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Conformance</title>
<meta name="viewport" content="width=device-width,initial-scale=1">
<style>
:root{{color-scheme:light dark}}
body{{font:15px/1.45 system-ui,sans-serif;margin:1.5rem auto;max-width:80rem;padding:0 1rem}}
table{{border-collapse:collapse;width:100%}}
th,td{{text-align:left;vertical-align:top;padding:.3rem .5rem;border-bottom:1px solid #8884}}
td:first-child{{white-space:nowrap}}
.failed{{color:#c22}}
.not{{opacity:.7}}
</style></head><body>
<h1>Conformance</h1>
<p>{summary}</p>
<table><thead><tr><th>id<th>section<th>keyword<th>asks for<th>state<th>checks</tr></thead>
<tbody>
{rows}
</tbody></table></body></html>
"""


def page(runtime, command, made):
    summary = (f"{runtime or 'a runtime that did not say what it is'}, by <code>"
               f"{html.escape(command)}</code>. {len(made)} requirements: "
               + ", ".join(f"{count} {state}" for state, count in counts(made).items()) + ".")
    lines = []
    for one in made:
        failed = "".join(f"<br>{html.escape(why)}" for why in one["failed"].values())
        lines.append(f'<tr class="{one["state"].split()[0]}"><td>{one["id"]}<td>{one["section"]}'
                     f'<td>{one["keyword"]}<td>{html.escape(one["text"])}<td>{one["state"]}'
                     f'<td>{one["passed"]} of {one["checks"]} {html.escape(one["why"])}{failed}')
    return PAGE.format(summary=summary, rows="\n".join(lines))


def write(path, runtime, command, results):
    made = list(rows(results))
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".json":
        data = {"runtime": runtime, "adapter": command, "counts": counts(made),
                "requirements": made, "checks": results}
        path.write_text(json.dumps(data, indent=1), encoding="utf-8")
    else:
        path.write_text(page(html.escape(runtime or ""), command, made), encoding="utf-8")

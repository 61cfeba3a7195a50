#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The catalogue against the project: what is cited where, what checks and tests show of it.

    report.py [--write] [--out FOLDER] [--checks FILE... [--least N]] [--tests FILE...] [--suite FILE]
    report.py --programs

Fails on an unknown id, on what is implemented and cited nowhere, on checks and tests that are not
as the catalogue has them, and on what is neither exercised nor excused.

--write          write docs/REQUIREMENTS.md, requirements.html and requirements.json beside it; without
                 it they must be as they would be written
--out FOLDER     report.json and report.html, with every place and every count
--checks FILE    lines of `faberio-sim checks --json --seeds A..B`: how often each check had
                 something to look at; of several files the sum. Each that a requirement names needs
                 at least N (1000)
--tests FILE     JUnit files of ctest: each test that a requirement names ran and passed. Names of
                 functions are in the tests' output, so pytest needs -vv there
--suite FILE     report of the conformance suite as JSON (docs/ADAPTER.md): how many of its checks of each
                 requirement passed. None may fail
--programs       the tests of ctest that a requirement names, as an expression for ctest -R"""
import argparse
import html
import json
import pathlib
import re
import sys
import typing
import xml.etree.ElementTree

import catalogue
import check_catalogue

MATRIX = "docs/REQUIREMENTS.md"
COVERAGE = "specs-conformance/suite-coverage.json"
LEAST = 1000


class Project(typing.NamedTuple):
    documents: list
    code: dict  # id -> places
    checks: dict  # check -> (ids, place)
    tests: dict  # file.function -> Test
    stray: list  # (id, place) in tests, in no test
    documented: list  # (id, place)
    parts: list
    suite: dict  # id -> how many checks the conformance suite has for it


def gather(root=catalogue.ROOT, folder=None):
    root = pathlib.Path(root)
    tests, stray = catalogue.test_citations(root)
    coverage = root / COVERAGE
    suite = json.loads(coverage.read_text(encoding="utf-8")) if coverage.exists() else {}
    return Project(catalogue.load(folder or root / "specs-conformance/requirements"),
                   catalogue.code_citations(root), catalogue.check_citations(root), tests, stray,
                   catalogue.document_citations(root), catalogue.later_parts(root), suite)


# ---- Citations ----


def unknown_ids(project):
    known = {one["id"] for one in catalogue.requirements(project.documents)}
    cited = [(name, place) for name, places in project.code.items() for place in places]
    cited += [(name, place) for ids, place in project.checks.values() for name in ids]
    cited += [(name, test.place) for test in project.tests.values() for name in sorted(test.ids)]
    cited += project.stray + project.documented
    cited += [(name, catalogue.Place(COVERAGE, 1)) for name in project.suite]
    for name, place in cited:
        if name not in known:
            yield f"{place.path}:{place.line}: {name} is no requirement"
    for name, place in project.stray:
        if name in known:
            yield f"{place.path}:{place.line}: {name} stands in no test"


def code_findings(project):
    for one in catalogue.requirements(project.documents):
        name, cited = one["id"], one["id"] in project.code
        if one["status"] in ("implemented", "refused"):
            if one["status"] == "implemented" and not cited and not one.get("nowhere", "").strip():
                yield f"{name}: implemented, and cited nowhere in the code"
            if cited and one.get("nowhere"):
                yield f"{name}: cited nowhere, it says, but {project.code[name][0].path} does"
        elif cited:
            yield f"{name}: {one['status']}, but {project.code[name][0].path} cites it"


def agreement_findings(project):
    """Checks and tests name the requirements that name them."""
    by_check, by_test = {}, {}
    for one in catalogue.requirements(project.documents):
        for check in one.get("checks", []):
            by_check.setdefault(check, set()).add(one["id"])
            if check not in project.checks:
                yield f"{one['id']}: there is no check {check}"
            elif one["id"] not in project.checks[check][0]:
                place = project.checks[check][1]
                yield f"{place.path}:{place.line}: {check} does not declare {one['id']}"
        for test in one.get("tests", []):
            by_test.setdefault(test, set()).add(one["id"])
            if test not in project.tests:
                yield f"{one['id']}: there is no test {test}"
                continue
            found = project.tests[test]
            if not found.registered:
                yield f"{found.place.path}:{found.place.line}: {test} is never run"
            if one["id"] not in found.ids:
                yield f"{found.place.path}:{found.place.line}: {test} does not name {one['id']}"
    for check, (ids, place) in project.checks.items():
        for name in ids:
            if name not in by_check.get(check, ()):
                yield f"{place.path}:{place.line}: the catalogue does not name {check} for {name}"
    for test, found in project.tests.items():
        for name in sorted(found.ids - by_test.get(test, set())):
            yield (f"{found.place.path}:{found.place.line}: the catalogue does not name {test} "
                   f"for {name}")


def excuse_findings(project):
    for one in catalogue.requirements(project.documents):
        if one["status"] != "implemented":
            continue
        if not one.get("checks") and not one.get("tests") and not one.get("untestable", "").strip():
            yield f"{one['id']}: no check, no test, and no reason why"
        excuse = one.get("offline", one.get("untestable", "")).strip()
        if catalogue.is_must(one) and not one.get("checks") and not excuse:
            yield f"{one['id']}: {one['keyword']}, and no check looks at it while nodes run, nor why"
        if one.get("offline") and one.get("checks"):
            yield f"{one['id']}: no check looks at it, it says, but names {one['checks'][0]}"


def citation_findings(project):
    yield from check_catalogue.findings(project.documents, project.parts, None)
    yield from unknown_ids(project)
    yield from code_findings(project)
    yield from agreement_findings(project)
    yield from excuse_findings(project)


# ---- What was exercised ----


def counts_of(*texts):
    """check -> how often it had something to look at."""
    counts = {}
    for line in (line for text in texts for line in text.splitlines()):
        data = json.loads(line) if line.startswith("{") else {}
        if "check" in data and "looked" in data:
            counts[data["check"]] = counts.get(data["check"], 0) + data["looked"]
    return counts


def programs(project):
    """An expression that ctest -R takes: what runs the tests that a requirement names."""
    stems = {"tidy_rules" if project.tests[test].place.path.startswith("tests/tidy/")
             else test.split(".")[0]
             for one in catalogue.requirements(project.documents)
             for test in one.get("tests", []) if test in project.tests}
    return "(^|_)(" + "|".join(sorted(stems)) + ")$"


_OK = re.compile(r"\[\s+OK \] (\w+)")
_PASSED = re.compile(r"::(\w+)(?:\[.*\])? PASSED")


def passed_of(text):
    """file.function of what ran and passed, from a JUnit file of ctest."""
    passed = set()
    for case in xml.etree.ElementTree.fromstring(text).iter("testcase"):
        if case.get("status") != "run" or case.find("failure") is not None:
            continue
        program = case.get("name")
        output = case.findtext("system-out") or ""
        stem = re.sub(r"^.*?(?=test_)", "", program)
        for name in _OK.findall(output) + _PASSED.findall(output):
            passed.add(f"{stem}.{name}")
        if program == "tidy_rules":
            passed.add("tidy")
    return passed


def suite_of(text):
    """id -> what the suite's report says of it."""
    return {one["id"]: one for one in json.loads(text)["requirements"]}


def suite_findings(project, suite):
    for one in catalogue.requirements(project.documents) if suite is not None else []:
        if one["id"] not in suite:
            yield f"{one['id']}: the suite's report is of another catalogue"
            continue
        for check in suite[one["id"]]["failed"]:
            yield f"{one['id']} ({one['keyword']}): the suite's {check} failed"


def exercise_findings(project, counts, passed, least):
    for one in catalogue.requirements(project.documents):
        for check in one.get("checks", []) if counts is not None else []:
            seen = counts.get(check, 0)
            if seen < max(least, 1):
                yield (f"{one['id']} ({one['keyword']}): {check} looked {seen} times, not "
                       f"{max(least, 1)}")
        for test in one.get("tests", []) if passed is not None else []:
            rule = project.tests[test].place.path.startswith("tests/tidy/") \
                if test in project.tests else False
            if test not in passed and not (rule and "tidy" in passed):
                yield f"{one['id']} ({one['keyword']}): {test} did not run and pass"


# ---- Reports ----

STATE = {"implemented": "implemented", "refused": "refused by design", "later": "later",
         "elsewhere": "binds others"}


def summary(documents):
    ones = catalogue.requirements(documents)
    by_state = {state: sum(one["status"] == state for one in ones) for state in STATE}
    musts = [one for one in ones if catalogue.is_must(one)]
    online = [one for one in musts if one.get("checks")]
    shown = [one for one in musts if one.get("checks") or one.get("tests")]
    return by_state, musts, online, shown


def state_text(one):
    if one["status"] == "later":
        return one["part"] if one["part"].startswith("unplanned") else f"later: {one['part']}"
    return STATE[one["status"]]


def _cell(text):
    return text.replace("|", "\\|").replace("<", "&lt;")


def shown_by(one, suite, code=lambda text: f"`{text}`"):
    parts = [code(name) for name in one.get("checks", [])]
    parts += [code(name) for name in one.get("tests", [])]
    if suite.get(one["id"]):
        parts.append(f"[suite](ADAPTER.md): {suite[one['id']]}")
    parts += [one[key] for key in ("offline", "untestable") if one.get(key)]
    if one.get("why"):
        parts.append(one["why"])
    return parts


def matrix(project):
    by_state, musts, online, shown = summary(project.documents)
    total = len(catalogue.requirements(project.documents))
    out = ["# Requirements",
           "",
           "<!-- Written by specs-conformance/report.py --write; the catalogue is in",
           "specs-conformance/requirements. -->",
           "",
           "What the drafts and the messaging profile ask for, in our own words, and what shows that it is",
           "there. How to read, cite and check it: [conformance](../specs-conformance/README.md). What is",
           "wrong with the drafts: [findings](FINDINGS.md).",
           "",
           f"{total} requirements: {by_state['implemented']} implemented, {by_state['later']} for later "
           f"parts, {by_state['refused']} refused by",
           f"design, {by_state['elsewhere']} that bind others. Of {len(musts)} under MUST and MUST NOT, "
           f"{len(shown)} are shown by checks or tests,",
           f"{len(online)} by a check that looks on while nodes run. {len(project.suite)} of all stand "
           "in the",
           "[conformance suite](ADAPTER.md), which asks any runtime: the number behind `suite` is that of its",
           "checks.",
           ""]
    for document in project.documents:
        out += [f"## {document.name}", "", f"`{document.file}`, SHA-256 `{document.sha256}`.", "",
                "| id | keyword | place | asks for | state | shown by |", "|---|---|---|---|---|---|"]
        for one in document.requirements:
            cells = [one["id"], one["keyword"], one["place"], one["text"], state_text(one),
                     ", ".join(shown_by(one, project.suite))]
            out.append("| " + " | ".join(map(_cell, cells)) + " |")
        out.append("")
    return "\n".join(out)


def as_data(project, counts, passed, found, suite=None):
    rows = []
    for document in project.documents:
        for one in document.requirements:
            row = dict(one, document=document.file, section=catalogue.section_of(one["id"]))
            row["code"] = [f"{p.path}:{p.line}" for p in project.code.get(one["id"], [])]
            row["checks"] = [{"check": c, "looked": counts.get(c, 0) if counts is not None else None}
                             for c in one.get("checks", [])]
            row["tests"] = [{"test": t, "passed": t in passed if passed is not None else None}
                            for t in one.get("tests", [])]
            row["suite"] = suite[one["id"]]["passed"] if suite and one["id"] in suite else None
            rows.append(row)
    texts = [{"file": d.file, "name": d.name, "sha256": d.sha256} for d in project.documents]
    return {"texts": texts, "findings": found, "requirements": rows}


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Requirements</title>
<meta name="viewport" content="width=device-width,initial-scale=1">
<style>
:root{{color-scheme:light dark}}
body{{font:15px/1.45 system-ui,sans-serif;margin:1.5rem auto;max-width:90rem;padding:0 1rem}}
table{{border-collapse:collapse;width:100%}}
th,td{{text-align:left;vertical-align:top;padding:.3rem .5rem;border-bottom:1px solid #8884}}
th{{position:sticky;top:0;background:Canvas}}
code{{font-size:.85em}}
td:first-child{{white-space:nowrap}}
td code{{display:block;overflow-wrap:anywhere;min-width:9rem}}
td:nth-child(4){{min-width:15rem}}
.later,.elsewhere,.refused{{opacity:.7}}
.bad{{color:#c22}}
input,select{{font:inherit;padding:.2rem}}
</style></head><body>
<h1>Requirements</h1>
<p>{summary}</p>
{findings}
<p><label>Search <input id="q" type="search" autofocus></label>
<label>Keyword <select id="k"><option value="">all</option>{keywords}</select></label>
<label>State <select id="s"><option value="">all</option>{states}</select></label>
<output id="n"></output></p>
<table><thead><tr><th>id<th>keyword<th>place<th>asks for<th>state<th>code<th>checks<th>tests</tr></thead>
<tbody>
{rows}
</tbody></table>
<script>
const rows=[...document.querySelectorAll('tbody tr')],q=document.getElementById('q'),
k=document.getElementById('k'),s=document.getElementById('s'),n=document.getElementById('n');
function show(){{let count=0;const words=q.value.toLowerCase().split(/\\s+/);
for(const r of rows){{const t=r.textContent.toLowerCase();
r.hidden=!(words.every(w=>t.includes(w))&&(!k.value||r.dataset.k===k.value)&&(!s.value||r.dataset.s===s.value));
count+=!r.hidden}}n.value=count+' of '+rows.length}}
for(const e of [q,k,s])e.addEventListener('input',show);show();
</script></body></html>
"""


def page(project, data):
    by_state, musts, online, shown = summary(project.documents)
    line = (f"{len(data['requirements'])} requirements: "
            + ", ".join(f"{count} {STATE[state]}" for state, count in by_state.items())
            + f". Of {len(musts)} under MUST and MUST NOT, {len(shown)} are shown, {len(online)} by a "
            "check that looks on while nodes run.")
    found = "".join(f"<li>{html.escape(text)}" for text in data["findings"])
    rows = []
    for one in data["requirements"]:
        checks = "".join(
            "<code>{}{}</code>".format(html.escape(c["check"]),
                                       "" if c["looked"] is None else f" {c['looked']:,}")
            for c in one["checks"])
        if one["suite"]:
            checks += f"<code>suite {one['suite']:,}</code>"
        tests = "".join(
            '<code{}>{}</code>'.format(' class="bad"' if t["passed"] is False else "",
                                       html.escape(t["test"])) for t in one["tests"])
        reason = html.escape(" ".join(one.get(key, "") for key in ("offline", "untestable", "why")).strip())
        code = "".join(f"<code>{html.escape(place)}</code>" for place in one["code"])
        rows.append(f'<tr class="{one["status"]}" data-k="{one["keyword"]}" data-s="{one["status"]}">'
                    f'<td id="{one["id"]}">{one["id"]}<td>{one["keyword"]}'
                    f'<td>{html.escape(one["place"])}<td>{html.escape(one["text"])}'
                    f"<td>{html.escape(state_text(one))}"
                    f'<td>{code or html.escape(one.get("nowhere", ""))}<td>{checks}<td>{tests}{reason}')
    options = "".join(f"<option>{one}" for one in catalogue.KEYWORDS)
    states = "".join(f"<option>{one}" for one in STATE)
    return PAGE.format(summary=html.escape(line), rows="\n".join(rows), keywords=options,
                       states=states,
                       findings=f'<ul class="bad">{found}</ul>' if found else "<p>No findings.</p>")


def files_of(data):
    """The same with files and no lines in them: those move with every change."""
    for row in data["requirements"]:
        row["code"] = list(dict.fromkeys(place.rsplit(":", 1)[0] for place in row["code"]))
    return data


def written(project):
    """What stands in docs/: path -> text."""
    data = files_of(as_data(project, None, None, []))
    return {MATRIX: matrix(project),
            "docs/requirements.json": json.dumps(data, indent=1) + "\n",
            "docs/requirements.html": page(project, data)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--checks", type=pathlib.Path, nargs="*")
    parser.add_argument("--least", type=int, default=LEAST)
    parser.add_argument("--tests", type=pathlib.Path, nargs="*")
    parser.add_argument("--suite", type=pathlib.Path)
    parser.add_argument("--programs", action="store_true")
    parser.add_argument("--citations", action="store_true", help="the citations only")
    arguments = parser.parse_args()
    project = gather()
    if arguments.programs:
        print(programs(project))
        return 0
    counts = None
    if arguments.checks:
        counts = counts_of(*(path.read_text(encoding="utf-8") for path in arguments.checks))
    passed = None
    if arguments.tests:
        passed = set().union(*(passed_of(path.read_text(encoding="utf-8"))
                               for path in arguments.tests))
    found = list(citation_findings(project))
    found += exercise_findings(project, counts, passed, arguments.least)
    suite = suite_of(arguments.suite.read_text(encoding="utf-8")) if arguments.suite else None
    found += suite_findings(project, suite)
    for name, text in written(project).items():
        path = catalogue.ROOT / name
        if arguments.write:
            path.write_text(text, encoding="utf-8")
        elif not arguments.citations and (not path.exists() or
                                          path.read_text(encoding="utf-8") != text):
            found.append(f"{name} is not what the catalogue says: ./dev requirements writes it")
    if arguments.out:
        arguments.out.mkdir(parents=True, exist_ok=True)
        data = as_data(project, counts, passed, found, suite)
        (arguments.out / "report.json").write_text(json.dumps(data, indent=1), encoding="utf-8")
        (arguments.out / "report.html").write_text(page(project, data), encoding="utf-8")
    for finding in found:
        print(finding)
    print(f"{len(catalogue.requirements(project.documents))} requirements, {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small project with a catalogue, in order; then each defect alone, which must be found."""
import hashlib
import json
import pathlib
import re
import tempfile
import unittest

import catalogue
import check_catalogue
import report

TEXT = """Title

1. Scope

Runtimes MUST count. See below.

  1. a list is no heading

2. Words

2.1 Order

Nodes MUST NOT shout and MAY whisper to the ones that stand nearest to them. They do NOT sing.

1. nor is this one
"""

CATALOGUE = """[document]
prefix = "FM"
name = "A text"
file = "text.md"
sha256 = "{sha256}"
[document.keywords]
"1" = ["MUST"]
"2.1" = ["MUST NOT", "MAY", "NOT"]
[[requirement]]
id = "FM-1-1"
keyword = "MUST"
covers = 1
place = "first sentence"
text = "Counting is a duty."
status = "implemented"
checks = ["counts"]
tests = ["test_count.counted", "test_more.test_more"]
[[requirement]]
id = "FM-2.1-1"
keyword = "MUST NOT"
covers = 1
place = "first sentence"
text = "No shouting."
status = "implemented"
offline = "Nothing can shout."
tests = ["test_count.quiet"]
[[requirement]]
id = "FM-2.1-2"
keyword = "MAY"
covers = 2
place = "first sentence, second half"
text = "Low voices are allowed."
status = "later"
part = "Whispers"
[[requirement]]
id = "FM-2.1-3"
keyword = "BINDS"
covers = 3
place = "second sentence"
text = "There is no song."
status = "implemented"
nowhere = "There is no branch for what is not done."
untestable = "Nobody can wait long enough."
"""

FILES = {
    "text.md": TEXT,
    "specs-conformance/requirements/text.toml": CATALOGUE,
    "docs/ARCHITECTURE.md": "### Whispers\n",
    "docs/FINDINGS.md": "FM-1-1 is good.\n",
    "protocol/count.c": "/* FM-1-1 */\nint count(void);\n/* FM-2.1-1 */\n",
    "sim/checkers/counts.c": 'const fb_sim_check c = {\n    .id = "counts",\n'
                             '    .musts = "DESIGN 2, "\n             "FM-1-1",\n};\n',
    "tests/unit/test_count.c":
        "/* A file. */\n"
        "/* FM-1-1 */\nstatic void counted(void **state)\n{\n    if (1) {\n    }\n}\n\n"
        "/* FM-2.1-1 */\nstatic void quiet(void **state)\n{\n}\n\n"
        "int main(void)\n{\n    run(counted);\n    run(quiet);\n}\n",
    "tests/e2e/test_more.py": "def helper():\n    pass\n\n\ndef test_more(net):\n    # FM-1-1\n    pass\n",
}

CHECKS = '{"check":"counts","requirements":["FM-1-1"],"looked":4000}\n{"result":"pass"}\n'

JUNIT = """<testsuite>
<testcase name="test_count" status="run"><system-out>[       OK ] counted
[       OK ] quiet</system-out></testcase>
<testcase name="e2e_test_more" status="run"><system-out>
tests/e2e/test_more.py::test_more[1] PASSED [ 50%]</system-out></testcase>
</testsuite>"""


class Sample(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        self.sha256 = hashlib.sha256(TEXT.encode()).hexdigest()
        for path, text in FILES.items():
            self.put(path, text.replace("{sha256}", self.sha256))

    def put(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text, encoding="utf-8")

    def change(self, path, old, new):
        text = (self.root / path).read_text(encoding="utf-8")
        self.assertIn(old, text)
        self.put(path, text.replace(old, new, 1))

    def entry(self, old, new):
        self.change("specs-conformance/requirements/text.toml", old, new)

    def texts(self):
        documents = catalogue.load(self.root / "specs-conformance/requirements")
        return list(check_catalogue.findings(documents, catalogue.later_parts(self.root), self.root))

    def citations(self):
        return list(report.citation_findings(report.gather(self.root)))

    def exercised(self, checks=CHECKS, junit=JUNIT, least=1000):
        return list(report.exercise_findings(report.gather(self.root), report.counts_of(checks),
                                             report.passed_of(junit), least))

    def finds(self, found, *words):
        self.assertTrue(any(all(word in one for word in words) for one in found), found)


class CatalogueTest(Sample):
    def test_in_order(self):
        self.assertEqual(self.texts(), [])
        self.assertEqual(catalogue.count_keywords(TEXT),
                         {"1": ["MUST"], "2.1": ["MUST NOT", "MAY", "NOT"]})

    def test_another_text(self):
        self.change("text.md", "See below.", "See above.")
        self.finds(self.texts(), "another text")

    def test_a_keyword_more_in_the_text(self):
        self.change("text.md", "See below.", "It SHOULD.")
        self.finds(self.texts(), "section 1 has ['MUST', 'SHOULD']")

    def test_keywords_in_another_order(self):
        self.entry('["MUST NOT", "MAY", "NOT"]', '["MAY", "MUST NOT", "NOT"]')
        self.finds(self.texts(), "section 2.1 has")

    def test_a_keyword_without_an_entry(self):
        self.entry('"1" = ["MUST"]', '"1" = ["MUST", "MAY"]')
        self.finds(self.texts(), "no entry for its keyword 2, MAY")

    def test_an_entry_of_another_keyword(self):
        self.entry('keyword = "MAY"', 'keyword = "SHOULD"')
        self.finds(self.texts(), "FM-2.1-2", "the text has MAY")

    def test_an_entry_of_no_keyword(self):
        self.entry("covers = 3\n", "")
        self.entry('keyword = "BINDS"', 'keyword = "MUST"')
        self.finds(self.texts(), "FM-2.1-3", "covers no keyword")

    def test_a_place_beyond_the_last(self):
        self.entry("covers = 3", "covers = 4")
        self.finds(self.texts(), "has no keyword 4")

    def test_ids(self):
        self.entry('"FM-2.1-2"', '"FM-2.1-4"')
        self.finds(self.texts(), "FM-2.1-4: number after 1")
        self.entry('"FM-2.1-4"', '"FM-2.1-1"')
        self.finds(self.texts(), "FM-2.1-1: twice")
        self.entry('"FM-2.1-3"', '"XX-2.1-3"')
        self.finds(self.texts(), "XX-2.1-3: not an id")

    def test_a_copied_sentence(self):
        self.entry("Low voices are allowed.",
                   "They whisper to the ones that stand nearest to them.")
        self.finds(self.texts(), "FM-2.1-2", "copied")

    def test_reasons(self):
        self.entry('part = "Whispers"', 'part = "Songs"')
        self.finds(self.texts(), "FM-2.1-2", "no part 'Songs'")
        self.entry('status = "later"', 'status = "refused"')
        self.finds(self.texts(), "FM-2.1-2", "no why")

    def test_members(self):
        self.entry('place = "second sentence"', 'plaice = "second sentence"')
        self.finds(self.texts(), "FM-2.1-3", "no place")


class CitationTest(Sample):
    def test_in_order(self):
        self.assertEqual(self.citations(), [])

    def test_uncited(self):
        self.change("protocol/count.c", "FM-2.1-1", "see the text")
        self.finds(self.citations(), "FM-2.1-1", "cited nowhere")

    def test_nowhere_and_cited(self):
        self.change("protocol/count.c", "/* FM-1-1", "/* FM-2.1-3, FM-1-1")
        self.finds(self.citations(), "FM-2.1-3", "protocol/count.c")

    def test_later_and_cited(self):
        self.change("protocol/count.c", "/* FM-1-1", "/* FM-2.1-2, FM-1-1")
        self.finds(self.citations(), "FM-2.1-2", "later")

    def test_unknown_ids(self):
        for path, old in (("protocol/count.c", "FM-1-1"), ("sim/checkers/counts.c", "FM-1-1"),
                          ("tests/unit/test_count.c", "FM-1-1"), ("docs/FINDINGS.md", "FM-1-1"),
                          ("tests/e2e/test_more.py", "# FM-1-1")):
            with self.subTest(path):
                self.change(path, old, f"{old}, FM-9-9")
                self.finds(self.citations(), path, "FM-9-9 is no requirement")
                self.put(path, FILES[path])

    def test_a_missing_test(self):
        self.change("tests/unit/test_count.c", "counted(void **state)", "recounted(void **state)")
        self.finds(self.citations(), "there is no test test_count.counted")

    def test_a_test_that_is_never_run(self):
        self.change("tests/unit/test_count.c", "    run(quiet);\n", "")
        self.finds(self.citations(), "test_count.quiet is never run")

    def test_a_test_that_says_nothing(self):
        self.change("tests/unit/test_count.c", "/* FM-2.1-1 */", "")
        self.finds(self.citations(), "test_count.quiet does not name FM-2.1-1")

    def test_a_test_that_says_more(self):
        self.change("tests/e2e/test_more.py", "FM-1-1", "FM-1-1, FM-2.1-1")
        self.finds(self.citations(), "does not name test_more.test_more for FM-2.1-1")

    def test_an_id_in_no_test(self):
        self.change("tests/e2e/test_more.py", "def helper", "# FM-2.1-1\ndef helper")
        self.finds(self.citations(), "FM-2.1-1 stands in no test")

    def test_a_missing_check(self):
        self.change("sim/checkers/counts.c", '"counts"', '"recounts"')
        self.finds(self.citations(), "there is no check counts")

    def test_a_check_that_says_nothing(self):
        self.change("sim/checkers/counts.c", "FM-1-1", "P-1")
        self.finds(self.citations(), "counts does not declare FM-1-1")

    def test_a_check_that_says_more(self):
        self.change("sim/checkers/counts.c", "FM-1-1", "FM-1-1, FM-2.1-1")
        self.finds(self.citations(), "does not name counts for FM-2.1-1")

    def test_a_must_that_no_check_looks_at(self):
        self.entry('offline = "Nothing can shout."\n', "")
        self.finds(self.citations(), "FM-2.1-1", "no check looks at it")

    def test_offline_and_looked_at(self):
        self.entry('checks = ["counts"]', 'checks = ["counts"]\noffline = "Nobody looks."')
        self.finds(self.citations(), "FM-1-1", "names counts")

    def test_neither_exercised_nor_excused(self):
        self.entry('untestable = "Nobody can wait long enough."\n', "")
        self.finds(self.citations(), "FM-2.1-3", "no check, no test")


class ExerciseTest(Sample):
    def test_in_order(self):
        self.assertEqual(self.exercised(), [])

    def test_a_check_that_never_looked(self):
        self.finds(self.exercised(CHECKS.replace("4000", "0"), least=0), "FM-1-1", "looked 0 times")
        self.finds(self.exercised('{"result":"pass"}'), "FM-1-1", "looked 0 times")

    def test_a_check_that_hardly_looked(self):
        self.finds(self.exercised(CHECKS.replace("4000", "999")), "FM-1-1", "looked 999 times")

    def test_a_test_that_did_not_run(self):
        self.finds(self.exercised(junit=JUNIT.replace("quiet", "noise")), "test_count.quiet")
        self.finds(self.exercised(junit=JUNIT.replace("PASSED", "SKIPPED")), "test_more.test_more")

    def test_a_test_that_failed(self):
        failed = JUNIT.replace('name="test_count" status="run">',
                               'name="test_count" status="run"><failure message=""/>')
        self.finds(self.exercised(junit=failed), "test_count.counted")


class SuiteTest(Sample):
    def suite(self, **failed):
        project = report.gather(self.root)
        rows = [{"id": one["id"], "passed": 3, "failed": failed.get(one["id"].replace("-", "_"), {})}
                for one in report.catalogue.requirements(project.documents)]
        return project, report.suite_of(json.dumps({"requirements": rows}))

    def test_in_order(self):
        self.assertEqual(list(report.suite_findings(*self.suite())), [])
        self.assertEqual(list(report.suite_findings(self.suite()[0], None)), [])

    def test_a_check_of_the_suite_failed(self):
        project, suite = self.suite(FM_1_1={"envelope/x": "it is wrong"})
        self.finds(list(report.suite_findings(project, suite)), "FM-1-1", "envelope/x")

    def test_of_another_catalogue(self):
        project, suite = self.suite()
        del suite["FM-2.1-2"]
        self.finds(list(report.suite_findings(project, suite)), "FM-2.1-2", "another catalogue")

    def test_in_the_report(self):
        project, suite = self.suite()
        data = report.as_data(project, None, None, [], suite)
        self.assertEqual([one["suite"] for one in data["requirements"]], [3] * 4)
        self.assertIn("suite 3", report.page(project, data))


class ReportTest(Sample):
    def test_whole(self):
        project = report.gather(self.root)
        counts, passed = report.counts_of(CHECKS), report.passed_of(JUNIT)
        data = report.as_data(project, counts, passed, ["something is wrong"])
        self.assertEqual(len(data["requirements"]), 4)
        self.assertEqual(data["requirements"][0]["code"], ["protocol/count.c:1"])
        self.assertEqual(data["requirements"][0]["checks"], [{"check": "counts", "looked": 4000}])
        page = report.page(project, data)
        for text in ("FM-2.1-3", "something is wrong", "4,000", "later: Whispers"):
            self.assertIn(text, page)
        matrix = report.matrix(project)
        self.assertIn("| FM-2.1-2 | MAY |", matrix)
        self.assertNotIn("protocol/count.c", matrix)

    def test_what_stands_in_the_documents(self):
        project = report.gather(self.root)
        texts = report.written(project)
        rows = {row["id"]: row for row in json.loads(texts["docs/requirements.json"])["requirements"]}
        self.assertEqual(rows["FM-1-1"]["code"], ["protocol/count.c"])
        self.assertIn("<code>protocol/count.c</code>", texts["docs/requirements.html"])
        self.put("protocol/count.c", "\n\n" + FILES["protocol/count.c"])
        self.assertEqual(report.written(report.gather(self.root)), texts)

    def test_several_files_of_counts(self):
        self.assertEqual(report.counts_of(CHECKS, "seed 1\n" + CHECKS), {"counts": 8000})

    def test_programs_that_are_named(self):
        found = re.compile(report.programs(report.gather(self.root)))
        self.assertTrue(found.search("test_count") and found.search("e2e_test_more"))
        self.assertFalse(found.search("test_counts") or found.search("fuzz_count"))

    def test_the_suite_in_the_matrix(self):
        self.put(report.COVERAGE, '{"FM-1-1": 7}')
        self.assertIn("[suite](ADAPTER.md): 7", report.matrix(report.gather(self.root)))
        self.put(report.COVERAGE, '{"FM-9-9": 7}')
        self.finds(self.citations(), "FM-9-9 is no requirement")


if __name__ == "__main__":
    unittest.main()

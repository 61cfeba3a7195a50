#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every rule fires on a bad sample, at the line expected, and is quiet on a good one."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import doc_rules  # noqa: E402
import object_rules  # noqa: E402
import source_rules  # noqa: E402
from tree import Tree  # noqa: E402

SPDX = "/* SPDX-License-Identifier: Apache-2.0 */\n"

# rule -> (good files, [(bad files, path, line)])
SAMPLES = {
    source_rules.include_direction: (
        {"protocol/a/a.h": "", "sim/s.h": "", "io/i.h": "", "runtime/r.h": "",
         "protocol/base/b.h": "", "protocol/base/hash.c": "#include <xxhash.h>\n",
         "protocol/a/a.c": '#include "protocol/a/a.h"\n#include <string.h>\n',
         "sim/s.c": '#include "protocol/a/a.h"\n#include <stdio.h>\n',
         "runtime/r.c": '#include "sim/s.h"\n#include "io/i.h"\n',
         "io/documents/d.h": '#include "protocol/a/a.h"\n#include <errno.h>\n',
         "sim/d.c": '#include "io/documents/d.h"\n',
         "tests/unit/t.c": '/*\n#include "nowhere.h"\n*/\n#include "runtime/r.h"\n'},
        [({"protocol/a/x.c": "#include <stdio.h>\n"}, "protocol/a/x.c", 1),
         ({"protocol/a/x.c": "\n#include <xxhash.h>\n"}, "protocol/a/x.c", 2),
         ({"protocol/a/x.c": '#include "sim/s.h"\n', "sim/s.h": ""}, "protocol/a/x.c", 1),
         ({"protocol/a/x.c": '#include "x.h"\n', "protocol/a/x.h": ""}, "protocol/a/x.c", 1),
         ({"protocol/base/x.h": '#include "protocol/a/a.h"\n', "protocol/a/a.h": ""},
          "protocol/base/x.h", 1),
         ({"sim/x.c": "#include <uv.h>\n"}, "sim/x.c", 1),
         ({"sim/x.c": "#include <math.h>\n"}, "sim/x.c", 1),
         ({"sim/x.c": '#include "io/i.h"\n', "io/i.h": ""}, "sim/x.c", 1),
         ({"io/x.c": '#include "sim/s.h"\n', "sim/s.h": ""}, "io/x.c", 1),
         ({"io/documents/x.c": '#include "io/i.h"\n', "io/i.h": ""}, "io/documents/x.c", 1),
         ({"io/documents/x.c": "#include <pthread.h>\n"}, "io/documents/x.c", 1),
         ({"io/x.c": '#include "runtime/r.h"\n', "runtime/r.h": ""}, "io/x.c", 1),
         ({"sim/x.c": '#include "fuzz/f.h"\n', "fuzz/f.h": ""}, "sim/x.c", 1)]),
    source_rules.floating_point: (
        {"protocol/a.c": "/* 1.5 double */ int a = 0x1e5; int b = 7; // 2.0\n"
                         "const char *c = \"float 1.0\"; int d = s.x.y;\n",
         "io/a.c": "double d = 0.5;\n"},
        [({"protocol/a.c": "int a;\ndouble b;\n"}, "protocol/a.c", 2),
         ({"sim/a.c": "int a = 1.5 * 2;\n"}, "sim/a.c", 1),
         ({"sim/a.c": "int a = .5;\n"}, "sim/a.c", 1),
         ({"sim/a.c": "long a = 1e9;\n"}, "sim/a.c", 1),
         ({"sim/a.h": "typedef _Float64 f;\n"}, "sim/a.h", 1)]),
    source_rules.impure_call: (
        {"protocol/a.c": "/* malloc() */ a->free(a->user, p); allocator.free(p); fb_time(); f(time);\n",
         "sim/a.c": "free(p); printf(\"\");\n"},
        [({"protocol/a.c": "\nx = malloc(3);\n"}, "protocol/a.c", 2),
         ({"protocol/a.c": "clock_gettime (0, &t);\n"}, "protocol/a.c", 1),
         ({"protocol/a.c": "free(p);\n"}, "protocol/a.c", 1),
         ({"protocol/a.h": "#define SAY printf(\"\")\n"}, "protocol/a.h", 1),
         ({"protocol/a.c": "x = rand();\n"}, "protocol/a.c", 1),
         ({"protocol/a.c": "qsort(p, n, s, c);\n"}, "protocol/a.c", 1)]),
    source_rules.simulator_chance: (
        {"sim/a.c": "clock_gettime(0, &t); fb_rand(1);\n", "io/a.c": "rand();\n"},
        [({"sim/a.c": "x = rand();\n"}, "sim/a.c", 1),
         ({"sim/a.c": "\nqsort(p, n, s, c);\n"}, "sim/a.c", 2),
         ({"sim/a.c": "clock_gettime(0, &t);\n", "sim/b.c": "time(0);\n"}, "sim/b.c", 1)]),
    source_rules.mutable_static: (
        {"protocol/a.c": "static const int a[] = {1};\nstatic int f(void)\n{\n}\n"
                         "static inline int g(void);\nstatic const char *const t = 0;\n"},
        [({"protocol/a.c": "static int counter;\n"}, "protocol/a.c", 1),
         ({"protocol/a.c": "void f(void)\n{\n    static uint8_t buffer[4];\n}\n"},
          "protocol/a.c", 3),
         ({"protocol/a.h": "extern int fb_counter;\n"}, "protocol/a.h", 1)]),
    source_rules.planted_place: (
        {"sim/mutants.def": 'X(BUG_A, "a", "protocol/a.c",\n',
         "protocol/a.c": "x = MUTANT(BUG_A, 1, 2);\n",
         "protocol/m.h": "#define MUTANT(id, good, bad) (good)\n"},
        [({"sim/mutants.def": '\nX(BUG_A, "a", "protocol/a.c",\n'}, "sim/mutants.def", 2),
         ({"protocol/a.c": "\nx = MUTANT(BUG_A, 1, 2);\n"}, "protocol/a.c", 2),
         ({"sim/mutants.def": 'X(BUG_A, "a", "protocol/b.c",\n',
           "protocol/a.c": "x = MUTANT(BUG_A, 1, 2);\n"}, "sim/mutants.def", 1)]),
    source_rules.stray_file: (
        {"README.md": "", "io/a.c": "", "fuzz/corpus/a/b": "\0"},
        [({"cg.out": ""}, "cg.out", 1), ({"build2/a.c": ""}, "build2/a.c", 1),
         ({"sim/a.o": "\0"}, "sim/a.o", 1)]),
    source_rules.file_length: (
        {"protocol/a.c": "\n" * 1000, "a.md": "\n" * 2000},
        [({"protocol/a.c": "\n" * 1001}, "protocol/a.c", 1001)]),
    source_rules.licence_line: (
        {"a.c": SPDX, "b.py": "#!/usr/bin/env python3\n# SPDX-License-Identifier: Apache-2.0\n",
         "a.md": "text\n"},
        [({"a.c": "int a;\n"}, "a.c", 1),
         ({"a.py": "#!/usr/bin/env python3\nimport os\n"}, "a.py", 2),
         ({"CMakeLists.txt": "project(a)\n"}, "CMakeLists.txt", 1)]),
    source_rules.machine_path: (
        {"a.c": "/usr/bin/env $X/home/a https://example.org/work/a\n"},
        [({"a.md": "\nsee /" "home/me/x\n"}, "a.md", 2),
         ({"a.c": 'open("/' 'root/x")\n'}, "a.c", 1)]),
    source_rules.open_end: (
        {"a.c": "TODOS\n"},
        [({"a.c": "\n/* TO" "DO: later */\n"}, "a.c", 2), ({"a.md": "FIX" "ME\n"}, "a.md", 1)]),
    source_rules.white_space: (
        {"a.c": "a\n", "fuzz/corpus/x/y": "a \t", "empty": ""},
        [({"a.c": "a\n\tb\n"}, "a.c", 2), ({"a.c": "a \n"}, "a.c", 1), ({"a.c": "a"}, "a.c", 1),
         ({"a.c": "a\r\n"}, "a.c", 1)]),
    source_rules.clang_format: (
        {"a.c": "int a;\n"},
        [({"a.c": "int a;\nint  b ;\n"}, "a.c", 2)]),
    source_rules.honest_test: (
        {"tests/e2e/test_a.py": "wait_for(event)\n", "io/a.c": "usleep(1);\n"},
        [({"tests/e2e/test_a.py": "\ntime.sleep(1)\n"}, "tests/e2e/test_a.py", 2),
         ({"tests/e2e/test_a.py": "@pytest.mark.skip\n"}, "tests/e2e/test_a.py", 1),
         ({"tests/unit/test_a.c": "usleep(5);\n"}, "tests/unit/test_a.c", 1)]),
    source_rules.assertion_alone: (
        {"sim/a.c": "_Noreturn void fb_assert_failed(const char *f, int l, const char *c)\n{\n}\n",
         "sim/b.c": "int fb_b(void)\n{\n}\n",
         "sim/c.h": "_Noreturn void fb_assert_failed(int l);\n"},
        [({"sim/a.c": "int fb_b(void)\n{\n}\n_Noreturn void fb_assert_failed(int l)\n{\n}\n"},
          "sim/a.c", 1)]),
    doc_rules.document_link: (
        {"README.md": "[a](docs/a.md) [b](docs/a.md#a-title) [c](https://example.org) [d](#top)\n"
                      "# Top\n```\n[x](nowhere)\n```\n",
         "docs/a.md": "# A `title`\n[up](../README.md)\n"},
        [({"README.md": "\n[a](docs/b.md)\n"}, "README.md", 2),
         ({"README.md": "[a](#nothing)\n"}, "README.md", 1),
         ({"docs/a.md": "[a](README.md)\n", "README.md": ""}, "docs/a.md", 1)]),
    doc_rules.document_path: (
        {"README.md": "`protocol/a.c` `protocol/*.c` `protocol/a.{c,h}` `other/x` `a->b`\n"
                      "<!-- paths: later -->\n`protocol/map`\n<!-- paths: now -->\n",
         "protocol/a.c": "", "protocol/a.h": ""},
        [({"docs/a.md": "\n`protocol/b.c`\n"}, "docs/a.md", 2),
         ({"docs/a.md": "`sim/*.def`\n"}, "docs/a.md", 1),
         ({"docs/a.md": "<!-- paths: later -->\n<!-- paths: now -->\n`io/x.c`\n"},
          "docs/a.md", 3)]),
    doc_rules.document_command: (
        {"dev": "  run   shows it\n", "README.md": "`./dev run`\n"},
        [({"dev": "  run   shows it\n", "README.md": "\n`./dev fly`\n"}, "README.md", 2)]),
    doc_rules.document_counter: (
        {"protocol/core/observe.h": '    X(A, "a")  \\\n',
         "docs/OPERATIONS.md": "# Counters\n| `a` | is |\n"},
        [({"protocol/core/observe.h": '    X(A, "a")  \\\n', "docs/OPERATIONS.md": ""},
          "protocol/core/observe.h", 1),
         ({"protocol/core/observe.h": "", "docs/OPERATIONS.md": "# Counters\n| `b` | is |\n"},
          "docs/OPERATIONS.md", 2)]),
    doc_rules.document_test: (
        {"tests/unit/test_a.c": "static void b(void **state)\n{\n}\n    TEST(b),\n",
         "tests/e2e/test_c.py": "def test_d():\n",
         "README.md": "`tests/unit/test_a.c:b`, `tests/e2e/test_c.py:test_d`\n"},
        [({"README.md": "`tests/unit/test_a.c:b`\n"}, "README.md", 1),
         ({"tests/unit/test_a.c": "static void b(void **state)\n", "README.md":
           "\n`tests/unit/test_a.c:b`\n"}, "README.md", 2),
         ({"tests/e2e/test_c.py": "def test_e():\n", "README.md":
           "`tests/e2e/test_c.py:test_d`\n"}, "README.md", 1)]),
}

# rule -> (good source, [bad sources]): compiled into an archive.
OBJECTS = {
    object_rules.core_imports: (
        "#include <string.h>\nvoid fb_other(void); void fb_assert_failed(void);\n"
        "void fb_other(void) {}\n"
        "void fb_f(char *p, int n) { memset(p, n, (unsigned)n); fb_other(); fb_assert_failed(); }\n",
        ["#include <stdlib.h>\nvoid *fb_f(void) { return malloc(3); }\n",
         "#include <time.h>\nlong fb_f(void) { return time(0); }\n",
         "void fb_unknown(void);\nvoid fb_f(void) { fb_unknown(); }\n"]),
    object_rules.core_exports: (
        "static int f(int a) { return a; }\nint fb_g(int a) { return f(a); }\n",
        ["int helper(int a) { return a; }\n", "const int table[] = {1};\n"]),
    object_rules.core_state: (
        "static const char *const names[] = {\"a\", \"b\"};\n"
        "const char *fb_f(int a) { return names[a]; }\n",
        ["static int n;\nint fb_f(void) { return ++n; }\n", "int fb_n = 3;\n",
         "int fb_f(void) { static int n = 1; return n++; }\n"]),
    object_rules.planted_bug: (
        "int fb_f(int a) { return a; }\n",
        ["extern int fb_planted_bug;\nint fb_f(void) { return fb_planted_bug; }\n",
         "int fb_planted_bug;\n"]),
    object_rules.float_instruction: (
        "long fb_f(long a, long b) { return a / b * 3; }\n",
        ["long fb_f(long a) { double b = a; return (long)(b * 3); }\n",
         "long double fb_f(long double a) { return a + 1; }\n"]),
}


# rule -> (good, bad) flags of the linker, for a program.
PROGRAMS = {
    object_rules.simulator_needs: ((), ("-Wl,--no-as-needed", "-lm")),
}


def tree_of(folder, files):
    for path, text in files.items():
        place = pathlib.Path(folder, path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode())
    return Tree(folder, list(files))


def archive_of(folder, source):
    path = pathlib.Path(folder)
    (path / "sample.c").write_text(source)
    subprocess.run(["cc", "-O1", "-fPIC", "-c", "sample.c"], cwd=path, check=True)
    subprocess.run(["ar", "rcs", "sample.a", "sample.o"], cwd=path, check=True)
    return path / "sample.a"


class RulesFire(unittest.TestCase):
    def test_every_rule_has_a_sample(self):
        self.assertEqual(set(source_rules.RULES + doc_rules.RULES), set(SAMPLES))
        self.assertEqual(set(object_rules.RULES), set(OBJECTS) | set(PROGRAMS))

    def test_text_rules(self):
        for rule, (good, bad) in SAMPLES.items():
            with self.subTest(rule.__name__), tempfile.TemporaryDirectory() as folder:
                self.assertEqual(list(rule(tree_of(folder, good))), [])
            for files, path, line in bad:
                with self.subTest(rule.__name__, files=files), \
                        tempfile.TemporaryDirectory() as folder:
                    found = [(one.path, one.line) for one in rule(tree_of(folder, files))]
                    self.assertEqual(found, [(path, line)])

    def test_object_rules(self):
        for rule, (good, bad) in OBJECTS.items():
            with tempfile.TemporaryDirectory() as folder, self.subTest(rule.__name__):
                self.assertEqual(list(rule(archive_of(folder, good))), [])
            for source in bad:
                with tempfile.TemporaryDirectory() as folder, \
                        self.subTest(rule.__name__, source=source):
                    self.assertNotEqual(list(rule(archive_of(folder, source))), [])

    def test_program_rules(self):
        for rule, (good, bad) in PROGRAMS.items():
            with tempfile.TemporaryDirectory() as folder, self.subTest(rule.__name__):
                program = pathlib.Path(folder, "program")
                for flags, quiet in ((good, True), (bad, False)):
                    subprocess.run(["cc", "-xc", "-", "-o", program, *flags], check=True, text=True,
                                   input="int main(void) { return 0; }\n")
                    self.assertEqual(not list(rule(program)), quiet)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""The worked examples of docs/VIEWS.md and docs/REPRODUCE.md, as somebody new would type them."""
import json
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).parents[2]
VIEWS = ROOT / "docs" / "VIEWS.md"
REPRODUCE = ROOT / "docs" / "REPRODUCE.md"


def example():
    """The commands of `./dev toy` in the worked example, in order."""
    text = VIEWS.read_text().split("## A worked example")[1].split("\n## ")[0]
    return re.findall(r"\./dev toy (run .*|shrink .*|replay [^`]*|step [^`]*|view [^`]*)(?:`|\n)", text)


def test_from_the_printed_line_to_the_cause_in_three_commands(sim, tmp_path):
    toys = sim.program.resolve().with_name("faberio-sim-toys")
    commands = [line.replace("`", "").split() for line in example()]
    assert [words[0] for words in commands] == ["run", "shrink", "replay", "step", "view"]

    def toy(words, code, text=None):
        done = subprocess.run([toys, *words], cwd=tmp_path, capture_output=True, text=True,
                              input=text, timeout=240)
        assert done.returncode == code, done.stderr
        return done

    found = toy(commands[0], 10)
    assert "FAIL safety applied-was-written at event " in found.stderr
    assert "replay: ./dev toy replay toy.sched" in found.stderr
    toy(commands[1], 10)
    small = (tmp_path / "small.sched").read_text()
    assert len(small.splitlines()) <= 12

    # The three.
    replayed = toy(commands[2], 10)
    assert json.loads(replayed.stdout.splitlines()[-1])["events"] < 200
    stepped = toy(commands[3], 0,
                  "bad\ncause\nstate B record\nback\nnext 1\nbranch drop\ncontinue\n").stdout
    assert "## safety: applied-was-written: B applied change" in stepped
    assert " bytes from C, damaged on the way" in stepped
    assert "record[" in stepped
    assert "the run is over, changed by hand" in stepped
    assert json.loads(stepped.splitlines()[-1])["result"] == "pass"
    toy(commands[4], 0)
    page = (tmp_path / "small.html").read_text()
    assert "damaged on the way" in page and len(page) < 100_000


def test_what_a_failure_printed_is_enough(sim, tmp_path):
    """docs/REPRODUCE.md: the two lines of a failure, and the three commands that follow."""
    text = REPRODUCE.read_text()
    failed, file = re.search(r"\n    FAIL (\w+ [\w-]+) at event .*\n    replay: \./dev sim replay (\S+)\n",
                             text).groups()
    three = re.findall(r"\n    \./dev sim ((?:replay|step|view) \S+(?: --html \S+)?)(?=\n)", text)
    assert [line.split()[0] for line in three] == ["replay", "step", "view"]
    assert {line.split()[1] for line in three} == {file}

    def typed(line, code, text=None):
        verb, _, *rest = line.split()
        done = subprocess.run([sim.program.resolve(), verb, ROOT / file, *rest], cwd=tmp_path,
                              capture_output=True, text=True, input=text, timeout=240)
        assert done.returncode == code, done.stderr
        return done

    assert f"FAIL {failed} at event" in typed(three[0], 11).stderr
    walked = typed(three[1], 0, "bad\nstate A record\nstate B record\nback\nhelp\n").stdout
    assert "## liveness: converges: no agreement" in walked
    # Of the two only B has it.
    assert walked.count("record[r00].existence_dots") == 1
    typed(three[2], 0)
    assert "converges" in (tmp_path / "run.html").read_text()

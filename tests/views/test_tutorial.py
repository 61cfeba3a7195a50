# SPDX-License-Identifier: Apache-2.0
"""The worked example of docs/VIEWS.md, as somebody new would type it."""
import json
import pathlib
import re
import subprocess

VIEWS = pathlib.Path(__file__).parents[2] / "docs" / "VIEWS.md"


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

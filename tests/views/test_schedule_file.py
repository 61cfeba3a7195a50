# SPDX-License-Identifier: Apache-2.0
"""A run that is written down takes no file's place unasked."""

RUN = ("run", "--seed", 1, "--nodes", 3, "--events", 2000, "--schedule")


def test_a_file_that_is_there_stays(sim, tmp_path):
    path = tmp_path / "mine.sched"
    path.write_text("# written by hand\n")
    sim.run(*RUN, path, code=2)
    assert path.read_text() == "# written by hand\n"


def test_force_writes_over_it(sim, tmp_path):
    path = tmp_path / "mine.sched"
    path.write_text("# written by hand\n")
    first = sim.verdict(*RUN, path, "--force")
    assert path.read_text().startswith("schedule 1\n")
    assert sim.verdict("replay", path)["hash"] == first["hash"]


def test_a_new_file_needs_no_force(sim, tmp_path):
    path = tmp_path / "new.sched"
    sim.verdict(*RUN, path)
    assert path.exists()

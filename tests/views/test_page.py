# SPDX-License-Identifier: Apache-2.0
"""The page of `sim view --html` in a real browser."""
import os

import pytest
from playwright.sync_api import sync_playwright

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
# A run that fails early: a write is answered before it is durable.
FAILING = ("--seed", "1", "--mutant", "answered-when-executed")


@pytest.fixture(scope="session")
def browser():
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


class Opened:
    """A page, with everything that it said and asked for."""

    def __init__(self, page, path):
        self.page, self.errors, self.requests = page, [], []
        page.on("console", lambda message: self.errors.append(message.text))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        self.url = path.as_uri()
        page.goto(self.url)
        page.wait_for_selector("html[data-ready=yes]")

    def count(self, selector):
        return self.page.locator(selector).count()

    def text(self, selector):
        return self.page.locator(selector).text_content()

    def picked(self):
        """The step that is picked in the current run."""
        return int(self.page.locator(".run.current .picked").get_attribute("data-step"))

    def rows(self, run=0):
        return self.page.evaluate(f"runs[{run}].rows.length")


@pytest.fixture
def opened(browser):
    pages = []

    def go(path, **options):
        page = browser.new_page(viewport={"width": 1200, "height": 800}, **options)
        pages.append(Opened(page, path))
        return pages[-1]

    yield go
    for one in pages:
        assert one.errors == []
        assert one.requests == [one.url]
        one.page.close()


@pytest.fixture(scope="session")
def failing(sim, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "failing.html"
    sim.run("view", *FAILING, "--html", path)
    return path


@pytest.fixture(scope="session")
def faulty(sim, tmp_path_factory):
    """A run with partitions, lossy carriers and crashes, next to another one."""
    path = tmp_path_factory.mktemp("page") / "faulty.html"
    sim.run("view", "--seed", "4", "--profile", "dense", "--events", "4000", "--only", "loss",
            "--only", "split", "--only", "isolate", "--only", "crash", "--html", path,
            "--last", "4000", "--beside", "9")
    return path


def test_is_small_and_opens(failing, opened):
    """How fast is for tests/bench/bench_page.py."""
    assert failing.stat().st_size <= 500 * 1024
    assert opened(failing).rows() > 0


def test_begins_at_the_violation(failing, opened):
    view = opened(failing)
    assert "durable-before-reply" in view.text("#verdict")
    assert "VIOLATION durable-before-reply" in view.text(".picked")
    assert view.count(".arrow") > 10 and view.count(".dot") > 10
    assert "VIOLATION" in view.text("#details")


def test_arrows_join_the_steps_that_the_data_names(failing, opened):
    view = opened(failing)
    wrong = view.page.evaluate("""runs[0].arrows.filter((a) => a.fate === 1 &&
        !(runs[0].place.get(a.from) < runs[0].place.get(a.to) && a.top < a.bottom)).length""")
    assert wrong == 0
    assert view.page.evaluate("runs[0].arrows.length") > 300


def test_filters_by_node_and_kind(failing, opened):
    view = opened(failing)
    everything = view.rows()
    view.page.get_by_role("button", name="A", exact=True).click()
    assert 0 < view.rows() < everything
    assert view.page.evaluate("runs[0].rows.every((row) => row.node !== 0)")
    view.page.get_by_role("button", name="A", exact=True).click()
    assert view.rows() == everything
    view.page.get_by_label("Kind of step").select_option("delivered")
    assert 0 < view.rows() < everything
    assert view.page.evaluate("runs[0].rows.every((row) => row.kinds.has('delivered'))")
    view.page.get_by_label("Kind of step").select_option("")
    view.page.get_by_role("button", name="only what tells").click()
    assert 0 < view.rows() < everything


def test_searches(failing, opened):
    view = opened(failing)
    view.page.keyboard.press("/")
    view.page.keyboard.type("gets 70 bytes from B")
    hits = view.page.evaluate("runs[0].hits.length")
    assert hits > 1 and view.text("#found") == f"{hits} found"
    view.page.keyboard.press("Enter")
    assert "70 bytes from B" in view.text("#details")
    first = view.picked()
    view.page.keyboard.press("n")
    assert view.picked() > first and "70 bytes from B" in view.text("#details")
    view.page.keyboard.press("N")
    assert view.picked() == first
    view.page.keyboard.press("Escape")
    assert view.text("#found") == ""


def test_jumps_to_the_first_violation(failing, opened):
    view = opened(failing)
    view.page.keyboard.press("Home")
    assert "VIOLATION" not in view.text("#details")
    view.page.get_by_role("button", name="first violation").click()
    assert "VIOLATION" in view.text("#details")
    # Also when a filter hides it.
    view.page.get_by_label("Kind of step").select_option("delivered")
    view.page.get_by_role("button", name="first violation").click()
    assert "VIOLATION" in view.text("#details")


def test_keyboard_walks(failing, opened):
    view = opened(failing)
    view.page.keyboard.press("Home")
    view.page.keyboard.press("PageDown")
    before = view.picked()
    view.page.keyboard.press("j")
    view.page.keyboard.press("ArrowDown")
    assert view.picked() == before + 2
    view.page.keyboard.press("k")
    assert view.picked() == before + 1
    node = view.page.evaluate("current.rows[current.picked].node")
    view.page.keyboard.press("l")
    assert view.page.evaluate("current.rows[current.picked].node") == node
    assert view.picked() > before + 1
    view.page.keyboard.press("End")
    view.page.keyboard.press("k")
    for _ in range(3):
        cause = view.page.evaluate("current.rows[current.picked].cause")
        if cause:
            view.page.keyboard.press("c")
            assert view.picked() == cause
            view.page.keyboard.press("e")
            assert view.page.evaluate("current.rows[current.picked].cause") == cause
            view.page.keyboard.press("c")
    dark = view.page.evaluate("document.documentElement.dataset.theme")
    view.page.keyboard.press("d")
    assert view.page.evaluate("document.documentElement.dataset.theme") != dark
    view.page.keyboard.press("t")
    assert view.page.get_by_role("button", name="time axis").get_attribute("aria-pressed") == "true"
    view.page.keyboard.press("?")
    assert view.page.get_by_role("dialog").is_visible()
    view.page.get_by_role("button", name="close").click()
    view.page.keyboard.press("2")
    assert view.page.evaluate("runs[0].rows.every((row) => row.node !== 1)")


def test_says_what_it_shows(failing, opened):
    view = opened(failing)
    listbox = view.page.get_by_role("listbox").first
    assert "seed 1" in listbox.get_attribute("aria-label")
    option = listbox.get_by_role("option").first
    assert "seconds" in option.get_attribute("aria-label")
    assert view.page.locator("[role=option][aria-selected=true]").count() == 1


def test_dark_when_the_system_is(failing, opened):
    view = opened(failing, color_scheme="dark")
    assert view.page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_two_runs_side_by_side_with_faults(faulty, opened):
    view = opened(faulty)
    assert view.count(".run") == 2
    first, second = (view.page.locator(".run").nth(i).bounding_box() for i in range(2))
    assert first["y"] == second["y"] and first["x"] + first["width"] <= second["x"] + 1
    assert view.page.evaluate("runs.every((run) => run.data.bands.length > 0)")
    lost = view.page.evaluate("runs[0].arrows.findIndex((a) => a.fate === 2)")
    assert lost >= 0
    view.page.evaluate(f"runs[0].pickStep(runs[0].arrows[{lost}].from)")
    assert view.count(".arrow.lost") > 0 and view.count(".cross") > 0
    view.page.evaluate("runs[0].scroll.scrollTop = runs[0].heightOf(runs[0].data.bands[0][0])")
    view.page.wait_for_selector(".band", state="attached")
    # The keyboard goes to the run that has the focus.
    view.page.locator(".scroll").nth(1).focus()
    view.page.keyboard.press("Home")
    assert view.page.evaluate("current === runs[1] && runs[1].picked === 0")

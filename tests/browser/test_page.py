"""The page in a real Chromium: every page, light and dark, wide and narrow, with and without JavaScript."""

import os
import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from conftest import ROOT, seen

PAGES = {
    "overview": "/",
    "team": "/team/support",
    "requests": "/requests",
    "requests-of-batch": "/requests?team=batch",
    "requests-refused": "/requests?reason=model_not_allowed",
    "cache": "/cache",
    "policies": "/policies",
    "policies-budgets": "/policies?kind=budget",
    "upstream": "/upstream",
    "models": "/models",
}
SHOTS = ROOT / "docs" / "page"
WRITES = bool(os.environ.get("SHOTS"))
"""SHOTS=1 writes the screenshots of docs/page anew."""


@pytest.fixture(params=["light", "dark"])
def scheme(request):
    return request.param


@pytest.fixture(params=[1280, 360])
def width(request):
    return request.param


@pytest.fixture
def tab(browser, scheme, width):
    """A tab, and whatever its console said."""
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 800})
    one = context.new_page()
    one.said = []
    one.on("console", lambda message: one.said.append(message.text))
    one.on("pageerror", lambda error: one.said.append(str(error)))
    yield one
    context.close()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_can_be_used_by_everybody(tab, url, name, scheme, width):
    """No fault of accessibility, nothing wider than the screen, a quiet console."""
    tab.goto(url + PAGES[name])
    assert tab.locator("h1").count() == 1
    faults = Axe().run(tab).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"]) for one in faults] == []
    assert tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert tab.said == []
    if WRITES and f"{name}-{scheme}-{width}" in (
        "overview-light-1280",
        "team-dark-1280",
        "requests-light-1280",
        "overview-dark-360",
    ):
        SHOTS.mkdir(exist_ok=True)
        tab.screenshot(path=SHOTS / f"{name}-{scheme}-{width}.png", full_page=name != "requests")


def test_numbers_move_by_themselves_and_stand_still_when_paused(browser, url):
    tab = browser.new_page()
    tab.goto(url + "/requests")
    first = tab.locator("#requests-rows tr").first.inner_text()
    tab.wait_for_function(
        "text => document.querySelector('#requests-rows tr').innerText !== text", arg=first, timeout=10_000
    )
    tab.get_by_role("button", name="Pause").click()
    assert tab.get_by_role("button", name="Go on").get_attribute("aria-pressed") == "true"
    before, stood = seen(url), tab.locator("#requests-rows").inner_text()
    tab.wait_for_timeout(4000)
    assert seen(url) > before
    assert tab.locator("#requests-rows").inner_text() == stood
    tab.close()


def test_everything_is_there_without_javascript(browser, url):
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    for path in PAGES.values():
        tab.goto(url + path)
        assert tab.locator("#sentence").inner_text()
        assert tab.get_by_role("button", name="Pause").count() == 0
    tab.goto(url + "/requests")
    tab.get_by_label("team").select_option("batch")
    tab.get_by_role("button", name="Show").click()
    assert re.search(r"team=batch", tab.url)
    assert set(tab.locator("#requests-rows tr td:nth-child(2)").all_inner_texts()) == {"batch"}
    context.close()


def test_everything_can_be_reached_by_keyboard(browser, url):
    tab = browser.new_page()
    tab.goto(url)
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.textContent") == "To the content"
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.id") == "content"
    tab.keyboard.press("Tab")
    reached = []
    for _ in range(12):
        reached.append(tab.evaluate("document.activeElement.textContent"))
        tab.keyboard.press("Tab")
    assert {"batch", "search", "support", "you"} <= set(reached)
    tab.close()


def test_a_focused_link_keeps_its_focus_when_figures_change(browser, url):
    tab = browser.new_page()
    tab.goto(url)
    tab.get_by_role("link", name="support").focus()
    tab.wait_for_timeout(7000)
    assert tab.evaluate("document.activeElement.textContent") == "support"
    tab.close()


def test_the_chart_says_in_words_what_it_shows(browser, url):
    tab = browser.new_page()
    tab.goto(url)
    said = tab.get_by_role("img", name=re.compile("Credits per day")).get_attribute("aria-label")
    assert re.search(r"most on \d{4}-\d\d-\d\d: [\d.]+\.$", said)
    tab.get_by_text("As figures").click()
    assert tab.get_by_role("table").count() == 2
    tab.close()

"""The playground in headless Chromium: check_playground.py URL KEY AXE [SCREENSHOTS].

Wants playwright and a Chromium of the system; AXE is the file axe.min.js of the npm package axe-core.
Clicks through the page as a person would, by mouse and by keyboard, wide and on a phone, and has axe
look at it in each state.
"""

import json
import os
import pathlib
import shutil
import sys
import time

from playwright.sync_api import sync_playwright

URL, KEY, AXE = sys.argv[1:4]
FOLDER = pathlib.Path(sys.argv[4]) if len(sys.argv) > 4 else None
PROGRAM = os.environ.get("MOLDE_CHROMIUM") or next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "google-chrome"))))


def wait(page, condition, seconds=120):
    """Asks from outside: the page's own policy forbids to evaluate text."""
    end = time.time() + seconds
    while not page.evaluate(condition):
        assert time.time() < end, (condition, page.inner_text("#status"))
        time.sleep(0.05)


def look(page, name):
    """A picture of a state, and what axe says of it."""
    if FOLDER:
        FOLDER.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=FOLDER / f"{name}.png", full_page=True)
    page.evaluate(pathlib.Path(AXE).read_text())
    found = page.evaluate("async () => (await axe.run()).violations.map(v => [v.id, v.impact, v.nodes.map(n => n.html.slice(0, 120))])")
    assert not found, (name, found)
    width = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    assert width[0] <= width[1], (name, "wider than the window", width)
    print("ok", name, flush=True)


def click_through(browser, name, **options):
    context = browser.new_context(**options)
    page = context.new_page()
    faults, foreign = [], []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("request", lambda request: foreign.append(request.url) if not request.url.startswith(URL) else None)
    page.goto(URL + "/")
    page.fill("#key", KEY)
    # The verdicts come while one types.
    schema = json.loads(page.input_value("#schema"))
    page.fill("#schema", json.dumps({**schema, "properties": {**schema["properties"], "anio": {"type": "integer", "pattern": "(a)\\1"}}}))
    wait(page, "document.querySelector('#lint-error').textContent.includes('/properties/anio/pattern')")
    look(page, f"{name}-refused")
    page.click("#run")
    wait(page, "document.querySelector('#status').textContent.startsWith('Failed')")
    page.fill("#schema", json.dumps(schema, indent=2))
    wait(page, "document.querySelector('#lint-rows').children.length > 3 && !document.querySelector('#lint-error').textContent")
    look(page, f"{name}-ready")
    # By keyboard: from the document to the button.
    page.focus("#document")
    page.keyboard.press("Control+Enter")
    wait(page, "document.querySelectorAll('#answer .token').length > 2")
    assert page.is_disabled("#run") or page.inner_text("#status").startswith("Complete"), "it streams"
    wait(page, "document.querySelector('#status').textContent.startsWith('Complete')")
    answer = json.loads(page.inner_text("#answer"))
    assert set(answer) == set(schema["properties"]), answer
    assert page.locator("#answer .forced").count() > 0 and page.locator("#answer .chosen").count() > 0
    assert page.locator("#field-rows tr").count() == 4
    page.locator("#answer button.chosen").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#rivals:not([hidden])")
    assert page.locator("#rival-rows tr").count() == 8
    look(page, f"{name}-answer")
    # Stopping.
    page.click("#run")
    page.click("#stop")
    wait(page, "document.querySelector('#status').textContent === 'Stopped.'")
    assert page.is_enabled("#run")
    assert not faults and not foreign, (faults, foreign)
    context.close()


with sync_playwright() as play:
    browser = play.chromium.launch(executable_path=PROGRAM, args=["--no-sandbox"])
    click_through(browser, "wide", viewport={"width": 1280, "height": 900})
    click_through(browser, "phone", viewport={"width": 360, "height": 740}, is_mobile=True, has_touch=True)
    click_through(browser, "dark", viewport={"width": 1280, "height": 900}, color_scheme="dark")
    browser.close()

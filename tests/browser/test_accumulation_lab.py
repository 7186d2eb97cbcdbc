"""The accumulation lab in a real JupyterLab, driven by a real Chromium. Screenshots go to tests/artefacts/."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ARTEFACTS = ROOT / "tests" / "artefacts"
CELL = {
    "cell_type": "code", "id": "lab", "execution_count": None, "metadata": {}, "outputs": [],
    "source": "from autograder import lab\n\nlab.accumulation()",
}  # fmt: skip
NOTEBOOK = {
    "nbformat": 4, "nbformat_minor": 5, "cells": [CELL],
    "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
}  # fmt: skip
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
# Looks at every frame that the browser paints: how often the picture was not there, or was not decoded, or moved.
WATCH = """() => {
    window.blanks = 0; window.frames_seen = 0; window.heights = new Set(); window.watching = true;
    const look = () => {
        const picture = document.querySelector('img[alt*="Ledger"]');
        window.frames_seen += 1;
        if (!picture || !picture.complete || !picture.naturalWidth) window.blanks += 1;
        else window.heights.add(Math.round(picture.getBoundingClientRect().height));
        if (window.watching) requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
}"""
# The colours that a dark theme sets.
DARK = """() => {
    document.body.dataset.jpThemeLight = 'false';
    const dark = {
        'layout-color0': '#111', 'layout-color1': '#212121', 'layout-color2': '#424242',
        'cell-editor-background': '#212121', 'content-font-color1': '#eee', 'ui-font-color1': '#eee',
        'ui-font-color0': '#fff', 'widgets-color': '#eee',
    };
    for (const [name, value] of Object.entries(dark)) document.documentElement.style.setProperty('--jp-' + name, value);
}"""
PICTURE, WORDS, LOOP = 'img[alt*="Ledger"]', '.jp-OutputArea-output [role="status"]', ".jp-OutputArea-output pre"

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def chromium():
    found = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)
    return found or pytest.skip("no Chromium on this computer")


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A JupyterLab of its own, on a free port, with one notebook that calls the lab."""
    pytest.importorskip("jupyterlab", reason="JupyterLab is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    home = tmp_path_factory.mktemp("jupyter")
    (home / "lab.ipynb").write_text(json.dumps(NOTEBOOK))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--ip=127.0.0.1", f"--port={port}",
        "--ServerApp.port_retries=0", "--IdentityProvider.token=", "--allow-root", f"--ServerApp.root_dir={home}",
        "--LabApp.news_url=", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]  # fmt: skip
    places = {f"JUPYTER_{name}_DIR": str(home / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
    environment = os.environ | places | {"PYTHONPATH": str(ROOT), "IPYTHONDIR": str(home / "ipython")}
    with (home / "server.log").open("wb") as log:
        server = subprocess.Popen(command, cwd=home, env=environment, stdout=log, stderr=log)
        try:
            url = f"http://127.0.0.1:{port}"
            until(lambda: answers(f"{url}/api/status"), 60)
            yield f"{url}/lab/tree/lab.ipynb?reset"
        finally:
            server.terminate()
            server.wait(20)


def answers(url):
    try:
        with urllib.request.urlopen(url, timeout=2) as reply:
            return reply.status == 200
    except OSError:
        return False


def until(true, seconds):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def page(address):
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    ARTEFACTS.mkdir(exist_ok=True)
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        page = browser.new_page(viewport={"width": 1400, "height": 1150})
        page.goto(address)
        try:
            run_the_cell(page, sync_api.TimeoutError)
        except BaseException:
            page.screenshot(path=ARTEFACTS / "accumulation-lab-failed.png")
            raise
        yield page
        browser.close()


def run_the_cell(page, timed_out):
    """Run the notebook's cell; again where JupyterLab, still loading, let the keys go by."""
    page.wait_for_selector(".jp-Notebook .jp-CodeCell .cm-content", timeout=90_000)
    page.wait_for_selector("text=Python 3 (ipykernel) | Idle", timeout=90_000)
    page.keyboard.press("Control+b")  # the file list makes room
    for last in (False, False, True):
        page.wait_for_timeout(1_000)
        if page.locator(".jp-Dialog").count():  # it asks for the kernel if it is run before it knows its own
            page.click(".jp-Dialog .jp-mod-accept")
        page.click(".jp-Notebook .jp-CodeCell .cm-content", timeout=60_000)
        page.keyboard.press("Control+Enter")
        try:
            page.wait_for_selector(PICTURE, timeout=30_000)
            return
        except timed_out:
            if last:
                raise


def slider(page, number):
    return page.locator(".widget-slider, .jupyter-widget-slider").nth(number)


def press(page, number, key, times=1):
    """Press an arrow key on a slider's handle and wait until the picture has followed."""
    handle = slider(page, number).locator(".noUi-handle")
    handle.focus()
    for _ in range(times):
        handle.press(key)
    settle(page)


def choose(page, number, label):
    page.locator(".widget-dropdown select, .jupyter-widget-dropdown select").nth(number).select_option(label=label)
    settle(page)


def settle(page, quiet=0.7):
    """Wait until the picture has not changed for a while."""
    last, since = None, time.monotonic()
    while time.monotonic() - since < quiet:
        now = page.locator(PICTURE).get_attribute("src")
        if now != last:
            last, since = now, time.monotonic()
        page.wait_for_timeout(50)


def shoot(page, name):
    page.locator(".jp-CodeCell").first.screenshot(path=ARTEFACTS / f"accumulation-lab-{name}.png")


def test_the_lab_lives_in_jupyterlab(page):
    """Moving a control changes words, loop and picture in place: one output, nothing stacks, jumps or blinks."""
    assert page.locator(PICTURE).count() == 1  # the widget alone, not the picture that stands in for it, too
    assert "Right" in page.locator(WORDS).inner_text()
    settle(page)
    shoot(page, "start")
    outputs, before = page.locator(".jp-OutputArea-output").count(), page.locator(PICTURE).get_attribute("src")
    page.evaluate(WATCH)

    choose(page, 0, "never")
    assert "Gradients are never cleared" in page.locator(WORDS).inner_text()
    assert "zero_grad" not in page.locator(LOOP).inner_text()
    assert page.locator(PICTURE).get_attribute("src") != before
    shoot(page, "never")

    press(page, 0, "ArrowRight")
    press(page, 1, "ArrowRight")
    choose(page, 0, "each step")
    choose(page, 3, "not stepped")
    assert "leftover" in page.locator(WORDS).inner_text()
    shoot(page, "leftover-leaks")

    choose(page, 3, "stepped, too")
    choose(page, 0, "between backward and step")
    shoot(page, "between")
    page.evaluate("window.watching = false")
    assert page.locator(".jp-OutputArea-output").count() == outputs
    assert page.locator(PICTURE).count() == 1
    assert page.evaluate("window.frames_seen") > 100
    assert page.evaluate("window.blanks") == 0
    assert page.evaluate("window.heights.size") == 1


def test_dragging_does_not_queue_up(page):
    """A slider that is moved over its whole range ends at its last state at once, not after all it passed."""
    choose(page, 0, "never")
    handle = slider(page, 0).locator(".noUi-handle")
    handle.focus()
    for key in ["ArrowLeft"] * 11 + ["ArrowRight"] * 11:
        handle.press(key)
    started = time.monotonic()
    page.wait_for_function(f"document.querySelector('{PICTURE}').alt.includes('by 20 backward calls')", timeout=5_000)
    settle(page, quiet=0.3)
    assert time.monotonic() - started < 3
    press(page, 1, "ArrowLeft", times=5)
    shoot(page, "largest")


def test_nothing_is_clipped_on_dark_ground_or_a_narrow_page(page):
    """On a dark theme and on a narrow page the controls, the loop and the picture stay inside the cell."""
    choose(page, 0, "each step")
    page.evaluate(DARK)
    settle(page)
    shoot(page, "dark")
    page.set_viewport_size({"width": 760, "height": 1300})
    settle(page)
    shoot(page, "narrow")
    area = page.locator(".jp-OutputArea").first.bounding_box()
    for part in (PICTURE, LOOP, WORDS):
        box = page.locator(part).first.bounding_box()
        assert box["x"] + box["width"] <= area["x"] + area["width"] + 1, part

"""A browser for the tests in this folder, or a reason why they are skipped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.lab import browser_arguments, find_browser


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    executable = find_browser()
    if executable is None:
        pytest.skip("no Chromium is installed (Debian: apt-get install chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=executable, args=browser_arguments(), headless=True
        )
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1280, "height": 1400})
    yield context.new_page()
    context.close()

"""The server's page in a real browser: an answer streams in, and the trace shows its steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.browser.test_chapters import screenshots_folder
from tests.serve.conftest import SIZES
from tests.serve.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]
PATIENCE_MS = 60_000


def test_chat_trace_stop_and_errors(page: Any, tmp_path: Path) -> None:
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    folder = screenshots_folder(tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    with Server(*SIZES, log=tmp_path / "log") as server:
        page.goto(server.url)
        page.get_by_label("Your message").fill("What is the capital of France?")
        page.keyboard.press("Enter")
        page.get_by_text("The capital of France is Paris.").wait_for(timeout=PATIENCE_MS)
        page.get_by_text("A ended: stop").wait_for(timeout=PATIENCE_MS)
        steps = page.locator("#steps li")
        assert steps.count() == 8
        assert "A 37" in steps.last.text_content()  # the prompt, in one step
        assert page.locator("#blocks span").count() == 96
        assert page.locator("#blocks .held").count() == 0

        page.get_by_label("Your message").fill("Tell me a long story.")
        page.keyboard.press("Enter")
        page.locator("#blocks .held").first.wait_for(timeout=PATIENCE_MS)
        page.screenshot(path=str(folder / "server_page.png"))
        page.get_by_role("button", name="Stop").click()
        server.wait_for("requests_running", 0)
        server.wait_for("kv_cache_usage", 0.0)

        page.get_by_label("Your message").fill("word " * 300)
        page.keyboard.press("Enter")
        page.locator(".error").wait_for(timeout=PATIENCE_MS)
        assert "max_model_len is 256" in page.locator(".error").text_content()
    assert problems == []

"""Every chapter, opened in JupyterLab in a real browser: all cells run and no cell fails.

Screenshots go to the folder named by MINI_ENGINE_SCREENSHOTS, else to pytest's temporary folder.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.browser.lab import (
    ROOT,
    errors_in,
    run_all_cells,
    running_lab,
    scroll_to,
    take_screenshots,
)

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]
CHAPTERS = sorted((ROOT / "chapters").glob("*.ipynb"))
SLIDER = re.compile(r"\w+_slider\(|\w+Slider\(|dial_board\(")
HANDLE = ".jp-Notebook .noUi-handle"


def screenshots_folder(tmp_path: Path) -> Path:
    chosen = os.environ.get("MINI_ENGINE_SCREENSHOTS")
    return Path(chosen) if chosen else tmp_path / "screenshots"


def write_notebook(path: Path, *sources: str) -> None:
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=metadata), path)


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_runs_in_the_browser(chapter: Path, page: Any, tmp_path: Path) -> None:
    work = tmp_path / "work"
    for name in ("chapters", "practice"):
        shutil.copytree(ROOT / name, work / name)
    with running_lab(work, tmp_path / "jupyter") as lab:
        notebook = run_all_cells(page, lab.page_of(f"chapters/{chapter.name}"), timeout_s=400)
        folder = screenshots_folder(tmp_path)
        pictures = take_screenshots(page, folder, chapter.stem)
        assert errors_in(notebook) == []
        assert pictures
        if SLIDER.search(chapter.read_text(encoding="utf-8")):
            move_the_first_slider(page, folder / f"{chapter.stem}-slider.png")


def move_the_first_slider(page: Any, picture: Path) -> None:
    """One key press moves it by a step: widgets work by keyboard, and moving one breaks nothing."""
    scroll_to(page, HANDLE)
    handle = page.locator(HANDLE).first
    handle.scroll_into_view_if_needed()
    before = handle.get_attribute("aria-valuenow")
    handle.focus()
    at_the_end = before == handle.get_attribute("aria-valuemax")
    handle.press("ArrowLeft" if at_the_end else "ArrowRight")
    page.wait_for_function(
        "([selector, value]) => document.querySelector(selector)"
        ".getAttribute('aria-valuenow') !== value",
        arg=[HANDLE, before],
    )
    page.wait_for_timeout(1000)
    page.screenshot(path=str(picture))
    shown = page.locator(".jp-Notebook [data-mime-type='application/vnd.jupyter.error']")
    assert shown.count() == 0


def test_the_harness_runs_cells_and_sees_errors(page: Any, tmp_path: Path) -> None:
    work = tmp_path / "work"
    slider = "import ipywidgets\nslider = ipywidgets.IntSlider(value=3, max=9)\nslider"
    long = "for number in range(150):\n    print(number)"
    write_notebook(work / "good.ipynb", "import mini_engine\n6 * 7", slider, long)
    write_notebook(work / "bad.ipynb", "1 / 0", "print('never reached')")
    with running_lab(work, tmp_path / "jupyter") as lab:
        good = run_all_cells(page, lab.page_of("good.ipynb"), timeout_s=60)
        assert errors_in(good) == []
        assert good["cells"][0]["outputs"][0]["data"]["text/plain"] == "42"
        pictures = take_screenshots(page, tmp_path / "shots", "good")
        assert len(pictures) > 1, "a notebook longer than the screen needs several pictures"
        assert pictures[0].stat().st_size > 10_000
        move_the_first_slider(page, tmp_path / "shots" / "slider.png")
        bad = run_all_cells(page, lab.page_of("bad.ipynb"), timeout_s=60)
        assert errors_in(bad) == [
            "cell 1: ZeroDivisionError: division by zero",
            "cell 2 did not run",
        ]

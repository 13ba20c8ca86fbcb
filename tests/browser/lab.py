"""Drives a real JupyterLab in a real browser: starts it, opens a notebook, runs all cells."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

ROOT = Path(__file__).resolve().parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# Nothing that a fresh profile would do on its own: no updates, no first-run pages, no network.
QUIET_BROWSER = [
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
OPENED = "() => window.jupyterapp?.shell?.currentWidget?.context?.isReady === true"
IDLE = """() => {
  const session = window.jupyterapp.shell.currentWidget.sessionContext;
  return session.isReady && session.session?.kernel?.status === 'idle';
}"""
RUN_ALL = "() => window.jupyterapp.commands.execute('notebook:run-all-cells').then(() => null)"
CONTENT = "() => window.jupyterapp.shell.currentWidget.context.model.toJSON()"
SCROLLER = ".jp-NotebookPanel .jp-WindowedPanel-outer"


def find_browser() -> str | None:
    """The path of an installed Chromium, or None."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


def browser_arguments() -> list[str]:
    """Chromium's own sandbox does not work for root."""
    return ["--no-sandbox", *QUIET_BROWSER] if os.geteuid() == 0 else QUIET_BROWSER


class Lab:
    """A running JupyterLab server over one folder."""

    def __init__(self, port: int, token: str) -> None:
        self.address = f"http://127.0.0.1:{port}"
        self.token = token

    def page_of(self, notebook: str) -> str:
        """The address that opens a notebook, given by its path below the server's folder."""
        return f"{self.address}/lab/tree/{quote(notebook)}?token={self.token}&reset"

    def answers(self) -> bool:
        """Whether the server is up."""
        try:
            with urllib.request.urlopen(f"{self.address}/api?token={self.token}", timeout=2):
                return True
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False


@contextmanager
def running_lab(folder: Path, state: Path) -> Iterator[Lab]:
    """JupyterLab over `folder` on a free port; its settings and logs stay in `state`."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    lab = Lab(port, secrets.token_hex(16))
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--expose-app-in-browser"]
    command += ["--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}"]
    command += ["--ServerApp.port_retries=0", f"--ServerApp.root_dir={folder}"]
    if os.geteuid() == 0:
        command.append("--allow-root")
    state.mkdir(parents=True, exist_ok=True)
    with (state / "server.log").open("w") as log:
        server = subprocess.Popen(
            command, env=_environment(state, lab.token), cwd=folder, stdout=log, stderr=log
        )
        try:
            deadline = time.monotonic() + 60
            while not lab.answers():
                if server.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(
                        f"JupyterLab did not start:\n{(state / 'server.log').read_text()[-3000:]}"
                    )
                time.sleep(0.2)
            yield lab
        finally:
            server.terminate()  # the server ends its kernels
            try:
                server.wait(timeout=20)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def _environment(state: Path, token: str) -> dict[str, str]:
    config = state / "config"
    (config / "labconfig").mkdir(parents=True, exist_ok=True)
    # The question about Jupyter news would lie over the notebook.
    news = {"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}
    (config / "labconfig" / "page_config.json").write_text(json.dumps(news))
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return dict(
        os.environ,
        JUPYTER_TOKEN=token,
        JUPYTER_CONFIG_DIR=str(config),
        JUPYTER_DATA_DIR=str(state / "data"),
        JUPYTER_RUNTIME_DIR=str(state / "runtime"),
        JUPYTERLAB_WORKSPACES_DIR=str(state / "workspaces"),
        JUPYTER_PREFER_ENV_PATH="1",
        IPYTHONDIR=str(state / "ipython"),
        PYTHONPATH=os.pathsep.join(paths),
        HF_HUB_OFFLINE="1",
    )


def run_all_cells(page: Any, address: str, timeout_s: float) -> dict[str, Any]:
    """Open a notebook, run every cell, and return the notebook as the browser then holds it."""
    page.goto(address, timeout=60_000)
    page.wait_for_function(OPENED, timeout=60_000)
    page.wait_for_function(IDLE, timeout=60_000)
    page.set_default_timeout(timeout_s * 1000)
    page.evaluate(RUN_ALL)
    page.wait_for_function(IDLE, timeout=timeout_s * 1000)
    notebook: dict[str, Any] = page.evaluate(CONTENT)
    return notebook


def errors_in(notebook: dict[str, Any]) -> list[str]:
    """Cells that did not run, and error outputs of cells that do not announce one."""
    found = []
    for number, cell in enumerate(notebook["cells"], start=1):
        if cell["cell_type"] != "code" or not "".join(cell["source"]).strip():
            continue
        if cell["execution_count"] is None:
            found.append(f"cell {number} did not run")
        if "raises-exception" in cell["metadata"].get("tags", []):
            continue
        for output in cell["outputs"]:
            if output["output_type"] == "error":
                found.append(f"cell {number}: {output['ename']}: {output['evalue']}")
    return found


def take_screenshots(page: Any, folder: Path, name: str) -> list[Path]:
    """Pictures of the whole notebook, one screen after the other, from the top."""
    folder.mkdir(parents=True, exist_ok=True)
    scroller = page.locator(SCROLLER).first
    scroller.evaluate("element => element.scrollTo(0, 0)")
    pictures: list[Path] = []
    while True:
        page.wait_for_timeout(400)  # JupyterLab draws cells as they come into view
        picture = folder / f"{name}-{len(pictures):02d}.png"
        page.screenshot(path=str(picture))
        pictures.append(picture)
        before = scroller.evaluate("element => element.scrollTop")
        scroller.evaluate("element => element.scrollBy(0, element.clientHeight * 0.9)")
        if scroller.evaluate("element => element.scrollTop") <= before or len(pictures) == 60:
            return pictures


def scroll_to(page: Any, selector: str) -> None:
    """Scroll down until an element is there; JupyterLab keeps only the cells near the view.

    Raises AssertionError if the end of the notebook comes first.
    """
    scroller = page.locator(SCROLLER).first
    scroller.evaluate("element => element.scrollTo(0, 0)")
    page.wait_for_timeout(400)
    while page.locator(selector).count() == 0:
        before = scroller.evaluate("element => element.scrollTop")
        scroller.evaluate("element => element.scrollBy(0, element.clientHeight * 0.5)")
        page.wait_for_timeout(400)
        at_the_end = scroller.evaluate("element => element.scrollTop") <= before
        assert not at_the_end, f"the notebook has no {selector}"

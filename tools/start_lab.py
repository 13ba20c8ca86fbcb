"""Owns the start of JupyterLab in the learner's space, on this machine or over SSH."""

from __future__ import annotations

import getpass
import os
import secrets
import socket
from pathlib import Path

from environment import Failed, venv_python

DEFAULT_PORT = 8888


def start_lab(root: Path, host: str, port: str) -> None:
    """Replace this process by JupyterLab on the first chapter.

    With a host or a port no browser is opened; the address and the SSH tunnel are printed instead.
    """
    work = root / "work"
    chapters = sorted((work / "chapters").glob("*.ipynb"))
    page = f"/lab/tree/chapters/{chapters[0].name}" if chapters else "/lab"
    command = [str(venv_python(root)), "-m", "jupyterlab"]
    command += [f"--ServerApp.root_dir={work}", f"--LabApp.default_url={page}"]
    scripts = venv_python(root).parent
    environment = dict(
        os.environ,
        JUPYTER_PREFER_ENV_PATH="1",  # .venv's kernel, not another
        VIRTUAL_ENV=str(scripts.parent),  # so that `python` in JupyterLab's terminals is .venv's
        PATH=os.pathsep.join([str(scripts), os.environ.get("PATH", os.defpath)]),
    )
    if is_root():
        print("JupyterLab refuses to run as root unless told to; as you are root, it is told to.")
        command.append("--allow-root")
    if host or port:
        number = parse_port(port)
        token = secrets.token_hex(16)
        environment["JUPYTER_TOKEN"] = token  # not on the command line, where others could read it
        command += ["--no-browser", f"--ServerApp.ip={host or 'localhost'}"]
        command += [f"--ServerApp.port={number}", "--ServerApp.port_retries=0"]
        print(remote_instructions(host, number, page, token), flush=True)
    os.chdir(work)
    os.execve(command[0], command, environment)


def is_root() -> bool:
    """Whether this process belongs to root."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def parse_port(port: str) -> int:
    """The port as a number. Raises Failed for anything but 1 to 65535."""
    if not port:
        return DEFAULT_PORT
    if not port.isdecimal() or not 1 <= int(port) <= 65535:
        raise Failed(f"PORT must be a number from 1 to 65535, got {port!r}")
    return int(port)


def remote_instructions(host: str, port: int, page: str, token: str) -> str:
    """What to type on the learner's own machine, and what to open there."""
    everywhere = host in ("0.0.0.0", "::", "*")
    target = "localhost" if everywhere or not host else host
    lines = [
        "On your own machine, open a tunnel and leave it running:",
        f"  ssh -N -L {port}:{target}:{port} {getpass.getuser()}@{socket.gethostname()}",
        "then open in your browser:",
        f"  http://localhost:{port}{page}?token={token}",
    ]
    if host and host not in ("localhost", "127.0.0.1", "::1"):
        lines.append(f"JupyterLab listens on {host}: others who reach it need the token, no more.")
    return "\n".join(lines)

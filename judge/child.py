"""Owns the process that runs a learner's file: loads it, runs what the judge asks, sends answers.

Started as `python -P -m judge.child REQUEST_FD RESULT_FD`. It holds no expected values and decides
nothing. Whatever the learner's code does to this process ends in a missing or a wrong answer.
"""

from __future__ import annotations

import faulthandler
import gc
import importlib
import importlib.util
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from judge import wire
from judge.api import Context, resolve
from judge.execute import OWN_FOLDER, attempt, raised
from judge.surroundings import Surroundings

PR_SET_PDEATHSIG = 1
SIGKILL = 9


def main(request_fd: int, result_fd: int) -> int:
    """Serve requests until the judge closes the pipe; one with "load" says what is graded next."""
    pid = os.getpid()
    request = _receive(request_fd, None)
    if request is None:
        return 0
    limits = request["limits"]
    _limit(limits)
    if limits["torch"]:
        _import_torch()
    arrays = wire.torch_tensor if limits["torch"] else None
    surroundings = Surroundings()
    parts: dict[str, Any] = {}
    context = Context()
    while request is not None:
        if "load" in request:
            stale = surroundings.differences()
            surroundings.restore()
            _limit_cpu(limits["cpu_s"])
            answer, parts = _load(request["load"], limits["torch"])
            answer |= {"stale": stale} if stale else {}
            context = Context(device=request["load"]["device"], slot=request["load"]["slot"])
        else:
            answer = _answer(request, parts, context)
        if os.getpid() != pid:  # the learner's code forked; only the original process may answer
            os._exit(0)
        _send(result_fd, {"number": request["number"], "answer": answer})
        sys.stdout.flush()
        sys.stderr.flush()
        request = _receive(request_fd, arrays)
    return 0


def _import_torch() -> None:
    """Import it without the garbage collector, which would walk all of it again and again."""
    gc.disable()
    importlib.import_module("torch")
    gc.enable()
    gc.freeze()  # the engine collects garbage whenever it closes; torch itself holds none


def _answer(request: Any, parts: Mapping[str, Any], context: Context) -> Any:
    try:
        stand_ins = {symbol: resolve(name) for symbol, name in request["parts"].items()}
        return resolve(request["execute"])({**parts, **stand_ins}, request["payload"], context)
    except BaseException as error:  # a learner's failure, whatever its class, is the answer
        return raised(error)


def _load(setup: Any, torch: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parts that a request names: symbols of the learner's file, or "module:name" strings."""
    parts = {symbol: resolve(name) for symbol, name in setup["parts"].items()}
    torch_s = 0.0
    if setup["file"] is not None:
        path = Path(setup["file"])
        OWN_FOLDER["path"] = str(path.parent)
        sys.path.append(str(path.parent))  # last, so that no file of the learner hides a library
        module, torch_s = _timed(path, setup["module"])
        if isinstance(module, wire.Raised):
            return {"raised": module}, {}
        missing = [symbol for symbol in setup["symbols"] if not hasattr(module, symbol)]
        if missing:
            return {"missing": missing}, {}
        parts |= {symbol: getattr(module, symbol) for symbol in setup["symbols"]}
    homes = {symbol: getattr(parts[symbol], "__module__", None) for symbol in setup["symbols"]}
    answer = {"ready": True, "cuda": _has_cuda() if torch else False, "homes": homes}
    return answer | ({"torch_s": torch_s} if torch_s else {}), parts


def _timed(path: Path, name: str) -> tuple[Any, float]:
    """The module or what it raised, and how long it took if it is what brought torch in."""
    before, started = "torch" in sys.modules, time.monotonic()
    module = attempt(_load_file, path, name)
    brought = "torch" in sys.modules and not before
    return module, time.monotonic() - started if brought else 0.0


def _load_file(path: Path, name: str) -> ModuleType:
    """Run the file as it is now: cached bytecode of an earlier save must not stand in for it."""
    module = ModuleType(name)
    module.__file__ = str(path)
    module.__spec__ = importlib.util.spec_from_file_location(name, path)
    sys.modules[name] = module
    exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)
    return module


def _has_cuda() -> bool:
    torch = importlib.import_module("torch")
    return bool(torch.cuda.is_available())


def _limit(limits: Any) -> None:
    """Bounds for this process and all it starts; the judge also watches from outside."""
    import resource

    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=False)  # the judge asks where this stands
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if limits["memory"]:
        resource.setrlimit(resource.RLIMIT_AS, (limits["memory"], limits["memory"]))
    if sys.platform == "linux":  # if the judge is killed, this process goes with it
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, SIGKILL)


def _limit_cpu(seconds: int) -> None:
    """Each exercise has its own CPU time, also in a process that graded others before."""
    import resource

    if not seconds:
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    ceiling = int(used.ru_utime + used.ru_stime) + 1 + seconds
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    ceiling = ceiling if hard == resource.RLIM_INFINITY else min(ceiling, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (ceiling, hard))


def _receive(fd: int, arrays: Callable[[wire.Array], Any] | None) -> Any:
    header = _read(fd, wire.HEADER.size)
    if len(header) < wire.HEADER.size:
        return None
    text, blob = wire.sizes(header)
    return wire.decode(_read(fd, text), _read(fd, blob), arrays)


def _read(fd: int, count: int) -> bytes:
    pieces: list[bytes] = []
    while count > 0:
        piece = os.read(fd, min(count, 1 << 20))
        if not piece:
            break
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)


def _send(fd: int, value: Any) -> None:
    try:
        frame = wire.encode(value)
    except wire.WireError as error:
        if "number" not in value:
            raise
        frame = wire.encode({"number": value["number"], "answer": raised(error)})
    view = memoryview(frame)
    while view:
        view = view[os.write(fd, view) :]


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1]), int(sys.argv[2])))

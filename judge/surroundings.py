"""Owns what a kept child process must look like before it grades another exercise.

A child may grade several exercises of one file, each from a module of its own. Whatever else the
learner's code changed in the process would make the second verdict depend on the first: what can be
put back is put back, and for the rest the judge takes a new process.
"""

from __future__ import annotations

import builtins
import os
import random
import sys
import threading
from typing import Any

from judge.execute import OWN_FOLDER


class Surroundings:
    """The process as it was when this was made; `differences` and `restore` compare with it."""

    def __init__(self) -> None:
        self._before = self._state()
        self._path = list(sys.path)
        torch = sys.modules.get("torch")
        self._random = None if torch is None else torch.get_rng_state()

    def differences(self) -> list[str]:
        """Names of what is no longer as it was and can't be put back."""
        now = self._state()
        return [name for name in now if now[name] != self._before.get(name, now[name])]

    def restore(self) -> None:
        """Forget the learner's modules and whatever was computed with them."""
        sys.path[:] = self._path
        folder = OWN_FOLDER.get("path")
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None)
            if folder and isinstance(file, str) and file.startswith(folder + os.sep):
                del sys.modules[name]
        engine = sys.modules.get("judge.tensor_engine")
        if folder and engine is not None:
            engine.load.cache_clear()  # its models may hold a learner's function
        random.seed()
        if self._random is not None:
            sys.modules["torch"].set_rng_state(self._random)

    def _state(self) -> dict[str, Any]:
        state: dict[str, Any] = {
            "threads": threading.active_count(),
            "working folder": os.getcwd(),
            "builtins": {name: id(value) for name, value in vars(builtins).items()},
        }
        torch = sys.modules.get("torch")
        if torch is not None:
            state |= {
                "default dtype": torch.get_default_dtype(),
                "default device": torch.get_default_device(),
                "gradients": torch.is_grad_enabled(),
                "inference mode": torch.is_inference_mode_enabled(),
                "computing threads": torch.get_num_threads(),
                "deterministic": torch.are_deterministic_algorithms_enabled(),
            }
        return state

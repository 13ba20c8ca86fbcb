"""mini-engine: a small LLM inference engine to read, run and rebuild part by part.

Importing this package prints nothing, touches no network and no GPU, and loads no torch.
"""

__version__ = "0.1.0"

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mini_engine.config import EngineConfig
    from mini_engine.engine import LLMEngine
    from mini_engine.parts import EngineParts
    from mini_engine.sampling_params import SamplingParams

__all__ = ["EngineConfig", "EngineParts", "LLMEngine", "SamplingParams"]

_HOME = {
    "EngineConfig": "mini_engine.config",
    "SamplingParams": "mini_engine.sampling_params",
    "EngineParts": "mini_engine.parts",
    "LLMEngine": "mini_engine.engine",
}


def __getattr__(name: str) -> Any:
    """Import the public names when they are first used."""
    if name not in _HOME:
        raise AttributeError(f"module 'mini_engine' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOME[name]), name)

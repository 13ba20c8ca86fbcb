"""Owns what a learner says of the six broken steps, beside what capture and replay show.

Runs in the child; knows no expected value.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from judge import graph_bugs
from judge.api import Context
from judge.execute import attempt


def rules(parts: Mapping[str, Any], payload: Any, context: Context) -> Any:
    """payload: {"steps": names}. {"rules": what the part returned, "seen": {step: lines}}."""
    here = str(Path(graph_bugs.__file__).parents[1])
    seen = {
        name: [line.replace(f"{here}/", "") for line in graph_bugs.happens(name, context.device)]
        for name in payload["steps"]
    }
    return {"rules": attempt(parts["broken_rules"]), "seen": seen}

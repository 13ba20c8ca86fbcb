"""Figures and widgets, all drawn from the records of one engine trace.

Nothing here computes a schedule: a figure shows what a run recorded, so a test can check it.
"""

from mini_engine.show.blocks import block_map
from mini_engine.show.cache import cache_map
from mini_engine.show.clock import timeline_by_time
from mini_engine.show.journey import request_map
from mini_engine.show.markup import Figure, table
from mini_engine.show.slots import slot_map
from mini_engine.show.timelines import timeline
from mini_engine.show.widgets import step_slider

__all__ = [
    "Figure",
    "block_map",
    "cache_map",
    "request_map",
    "slot_map",
    "step_slider",
    "table",
    "timeline",
    "timeline_by_time",
]

"""Figures and widgets, all drawn from the records of one engine trace.

Nothing here computes a schedule: a figure shows what a run recorded, so a test can check it.
"""

from mini_engine.show.batches import flat_batch, flat_rows
from mini_engine.show.blocks import block_map
from mini_engine.show.cache import cache_map
from mini_engine.show.charts import line_chart
from mini_engine.show.clock import timeline_by_time
from mini_engine.show.gpu_figures import graph_figures
from mini_engine.show.journey import request_map
from mini_engine.show.markup import Figure, table
from mini_engine.show.padding import padding_map, padding_rows
from mini_engine.show.schedule_diff import schedule_diff
from mini_engine.show.served import served_request
from mini_engine.show.slots import slot_map
from mini_engine.show.source_map import source_table
from mini_engine.show.streams import text_steps, text_stream
from mini_engine.show.timelines import timeline
from mini_engine.show.tokens import dial_board, token_stages
from mini_engine.show.widgets import choice_slider, step_slider

__all__ = [
    "Figure",
    "block_map",
    "cache_map",
    "choice_slider",
    "dial_board",
    "flat_batch",
    "flat_rows",
    "graph_figures",
    "line_chart",
    "padding_map",
    "padding_rows",
    "request_map",
    "schedule_diff",
    "served_request",
    "slot_map",
    "source_table",
    "step_slider",
    "table",
    "text_steps",
    "text_stream",
    "timeline",
    "timeline_by_time",
    "token_stages",
]

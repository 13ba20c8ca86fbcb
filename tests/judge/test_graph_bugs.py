"""The six broken steps break just the rule that the answers name: repaired, they answer rightly."""

from __future__ import annotations

import pytest
import torch

from judge.exercises.graphs_find_the_bug import RULES, STEPS
from judge.graph_bugs import STEPS as BROKEN
from judge.graph_bugs import happens, replayed, right_answers
from judge.solutions.graph_bugs import REPAIRED, broken_rules
from tests.graphs.devices import on_each_device

REFUSED = {"waits", "shapes"}


@on_each_device
@pytest.mark.parametrize("name", STEPS)
def test_a_step_fails_until_its_rule_is_kept(name: str, device: str) -> None:
    lines = happens(name, device)
    rule = broken_rules()[name]
    assert (lines[0] == "the capture is refused:") == (rule in REFUSED)
    assert "every replay answers rightly" not in lines[0]
    if rule == "padding":
        assert "replay 3" in lines[0], "nothing is wrong until a request's place is used again"
    repaired = REPAIRED[name](device)
    assert isinstance(repaired, BROKEN[name])
    assert replayed(repaired, torch.device(device)) == right_answers()


def test_every_rule_is_broken_once_at_most() -> None:
    rules = broken_rules()
    assert tuple(rules) == STEPS == tuple(BROKEN)
    assert len(set(rules.values())) == len(STEPS)
    assert set(rules.values()) < set(RULES)
    assert len(set(RULES) - set(rules.values())) == 2, "the last one can't be found by elimination"

"""The claims table: every stored result can be judged, and the rules can say no."""

import copy
import json

import pytest

from experiments import judges
from experiments.claims import CLAIMS, FOLDER, found


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.sentence)
def test_every_claim_has_a_finding(claim):
    figure, verdict = found(claim)
    assert figure
    assert verdict.split(":")[0] in {judges.HOLDS, judges.PART, judges.FAILS, "open", "judged there"}


def test_a_rule_can_say_no():
    numbers = json.loads((FOLDER / "bimodal" / "result.json").read_text())
    assert judges.stuck(numbers)[1] == judges.HOLDS
    moved = copy.deepcopy(numbers)
    moved["plain"]["left_mass"][0] = 0.7
    assert judges.stuck(moved)[1] == judges.FAILS
    moved["tempered"]["left_mass"] = [0.9, 0.02]
    assert judges.masses(moved)[1] == judges.FAILS
    assert judges.graded([1, 0, 1], "why") == f"{judges.PART}: why"
    assert judges.graded([0, 0, 1]) == judges.FAILS

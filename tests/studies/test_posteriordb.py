"""The study of real posteriors knows right from wrong."""

import numpy as np
import pytest

from studies.partly_gaussian import log_evidence
from studies.posteriordb import from_one, is_right, table
from tests.frontends.conjugate import CASES, numpyro_target
from thermocline.evaluator import Evaluator


def run(**scalar):
    numbers = {"mean z": 1.0, "deviation z": 1.0, "deviation ratio": 1.01} | scalar
    found = {"scalars": {"x": numbers}, "name": "of", "verdict": "ok", "seconds": 1.0, "dimension": 1, "evaluations": 9}
    return found | {"log_evidence": [0.0, 0.1, 5.0], "z": 0.5}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (run(), True),
        (run(**{"mean z": -5.0}), False),
        (run(**{"deviation z": 9.0}), True),  # within 5 %
        (run(**{"deviation z": 9.0, "deviation ratio": 1.1}), False),
        (run(**{"deviation z": 2.0, "deviation ratio": 1.1}), True),  # within its error
        (run() | {"z": -6.0}, False),
        ({"name": "of", "verdict": "timeout", "seconds": 300.0}, False),
    ],
)
def test_right_is_within_errors_of_the_reference(found, expected):
    assert is_right(found) == expected
    assert table([found]).row_count == 1


def test_names_count_from_zero():
    assert [from_one(name) for name in ("x", "x[1]", "x[2,10]")] == ["x", "x[0]", "x[1,9]"]


@pytest.mark.parametrize("name", ["normal, unknown variance", "regression"])
def test_quadrature_over_the_one_coordinate_that_is_not_gaussian(name):
    evaluate = Evaluator(numpyro_target(name))
    centre, deviation = np.full(evaluate.dimension, 0.3), np.full(evaluate.dimension, 0.6)
    assert log_evidence(evaluate, centre, deviation) == pytest.approx(CASES[name].log_evidence, abs=1e-6)

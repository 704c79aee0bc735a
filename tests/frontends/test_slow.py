"""Whole runs from every front end: eight evidences, and Radon."""

import pytest

import thermocline as tc
from tests.frontends import radon
from tests.frontends.conjugate import CASES, TARGETS
from tests.frontends.test_conjugate import FRONT_ENDS

pytestmark = pytest.mark.slow
QUIET = {"progress": False, "seed": 1}


@pytest.mark.parametrize("front_end", FRONT_ENDS)
@pytest.mark.parametrize("name", CASES)
def test_evidence_of_conjugate_models(front_end, name):
    result, case = tc.sample(TARGETS[front_end](name), **QUIET, search=False), CASES[name]
    assert abs(result.log_evidence.z_score(case.log_evidence)) < 4
    assert result.log_evidence.standard_error <= 0.05
    shapes = {parameter: values.shape[2:] for parameter, values in result.parameters.items()}
    for parameter, shape in case.shapes.items():
        assert shapes[parameter] == (shape if front_end != "stan" or parameter == "slope" else (1, *shape))


@pytest.mark.parametrize("front_end", FRONT_ENDS)
def test_radon(front_end):
    result, exact = radon.main(front_end)
    assert abs(exact + 1081.0217) < 1e-4
    assert abs(result.log_evidence.z_score(exact)) < 4
    assert result.log_evidence.standard_error <= 0.05

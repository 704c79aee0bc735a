"""Models of the galleries that take seconds, against moments of long runs of NUTS that `studies.galleries` made."""

import json
from pathlib import Path

import pytest

import thermocline as tc
from studies import galleries_numpyro, galleries_pymc
from studies.galleries_data import GALLERIES
from studies.posteriordb import against_reference, is_right

REFERENCES = json.loads(Path(__file__).with_name("galleries.json").read_text())
COORDS = {
    ("schools_noncentred", "numpyro"): ("school", list(range(8))),
    ("schools_noncentred", "pymc"): ("school", list("ABCDEFGH")),
    ("dirichlet_multinomial", "pymc"): ("species", ["pine", "oak", "ebony", "rosewood", "mahogany"]),
    ("survival", "numpyro"): ("regressor", [0, 1]),
    ("survival", "pymc"): ("regressor", ["age", "dose"]),
}
FAST = {("survival", "numpyro"), ("schools_noncentred", "pymc")}


@pytest.mark.parametrize(
    ("name", "front_end"), [case if case in FAST else pytest.param(*case, marks=pytest.mark.slow) for case in COORDS]
)
def test_it_is_right_and_keeps_dims_and_coords(name, front_end):
    module = {"numpyro": galleries_numpyro, "pymc": galleries_pymc}[front_end]
    result = tc.sample(module.target_of(name), seed=1, progress=False)
    assert result.verdict == "ok"
    assert is_right(against_reference(result, REFERENCES[name]))
    posterior = result.to_arviz().posterior
    for site, dims in GALLERIES[name].dims.items():
        assert posterior[site].dims[2:] == dims
    dim, values = COORDS[name, front_end]
    assert posterior.coords[dim].values.tolist() == values

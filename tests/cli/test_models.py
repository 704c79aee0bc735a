"""The command on models of every front end, and on its own demonstration: answers that are known exactly."""

import json
import math

import jax
import numpy as np
import pytest
from typer.testing import CliRunner

import thermocline as tc
from thermocline.cli.commands import app, target_of

SMALL = ["--base", "laplace", "--num-chains", "4", "--num-draws", "400"]
PYMC = """
import pymc as pm

with pm.Model() as model:
    pm.Normal("y", pm.Normal("mu"), 1.0, observed=0.5)
"""
NUMPYRO = """
import numpyro
import numpyro.distributions as dist


def model(y, num):
    with numpyro.plate("rows", num):
        numpyro.sample("y", dist.Normal(numpyro.sample("mu", dist.Normal(0, 1)), 1), obs=y)
"""
STAN = "data { int num; vector[num] y; }\nparameters { real mu; }\nmodel { mu ~ normal(0, 1); y ~ normal(mu, 1); }\n"


def run(*words: str):
    return CliRunner().invoke(app, list(map(str, words)))


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "text", "package"),
    [("of_pymc.py", PYMC, "pymc"), ("of_numpyro.py", NUMPYRO, "numpyro"), ("of_stan.stan", STAN, "httpstan")],
)
def test_models_of_front_ends_give_their_evidence(name, text, package, tmp_path):
    """N(0.5; 0, 2), whoever writes it."""
    pytest.importorskip(package)
    (tmp_path / name).write_text(text)
    (tmp_path / "data.json").write_text('{"y": [0.5], "num": 1}')
    given = [] if package == "pymc" else ["--data", tmp_path / "data.json"]
    done = run("run", tmp_path / name, *given, *SMALL, "--json")
    assert done.exit_code == 0, done.output
    value = json.loads(done.stdout)["log_evidence"]["value"]  # Laplace's base is the target
    assert value == pytest.approx(-0.25 * 0.5**2 - 0.5 * math.log(4 * math.pi), abs=1e-6)


@pytest.mark.long
def test_the_demonstration_asks_answers_and_writes(tmp_path):
    pytest.importorskip("jinja2")
    done = run("demo", "--out", tmp_path / "demo")
    assert done.exit_code == 0, done.output
    assert "plain HMC" in done.stdout
    assert "1, no doubt" in done.stdout
    assert {file.name for file in (tmp_path / "demo").iterdir()} == {"figure.png", "report.html", "run.nc"}
    assert abs(tc.load(tmp_path / "demo" / "run.nc").log_evidence.z_score(-7.0)) < 4


def test_the_demonstration_is_a_target_with_a_known_evidence():
    target, _ = target_of("thermocline.cli.demo:demonstration")
    x, y = np.meshgrid(np.linspace(-9, 9, 401), np.linspace(-12, 40, 801), indexing="ij")
    values = jax.vmap(target)({"x": x.ravel(), "y": y.ravel()})
    cell = (18 / 400) * (52 / 800)
    assert np.log(np.exp(np.asarray(values, float)).sum() * cell) == pytest.approx(-7.0, abs=0.01)

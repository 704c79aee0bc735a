"""The command: what it prints, what it writes, how it ends, and that Ctrl-C loses nothing."""

import json
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from typer.testing import CliRunner

import thermocline as tc
from thermocline.auto import FITS, FITS_OF_DRAWS
from thermocline.bases import BASES
from thermocline.checks import CHECKS
from thermocline.cli.commands import app, distinct_names, target_of
from thermocline.methods import METHODS
from thermocline.records import Draws

MODEL = '''
import jax.numpy as jnp
import thermocline as tc


def log_density(x, data):
    """The log of a Gamma(3) variable, times exp(-2)."""
    return 3 * x - jnp.exp(x) - jnp.log(2.0) - data


target = tc.Target(log_density, 0.5, 2.0)
number = 3


def make():
    return target
'''
SMALL = ["--base", "laplace", "--num-chains", "4"]
LENGTH = ["--num-draws", "400"]
LONG = ["--num-draws", "60000"]


def run(*words: str):
    return CliRunner().invoke(app, list(map(str, words)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("cli")
    (path / "model.py").write_text(MODEL)
    return path


@pytest.fixture(scope="module")
def finished(folder):
    done = run("run", f"{folder}/model.py:target", *SMALL, *LENGTH, "--out", folder / "run.nc", "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_run_prints_json_that_is_right(finished, folder):
    evidence = tc.load(folder / "run.nc").log_evidence
    assert abs(evidence.z_score(-2.0)) < 4
    assert finished["log_evidence"] == vars(evidence)
    assert finished["verdict"] in ("ok", "suspect")
    assert finished["run"]["draws"] == 400
    mean = finished["parameters"]["x"]
    assert abs(mean["mean"] - 0.9227843) < 4 * mean["standard_error"]  # digamma(3)
    assert {"name", "value", "limit", "status", "advice"} == set(finished["checks"][0])


def test_a_function_that_makes_the_target_and_options_reach_the_run(folder):
    done = run("run", f"{folder}/model.py:make", *SMALL, *LENGTH, "--seed", 5)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("verdict")
    assert re.search(r"seed +5,", done.stdout)


def test_summary_of_a_file(finished, folder):
    done = run("summary", folder / "run.nc")
    assert done.exit_code == 0
    assert done.stdout.strip() == tc.load(folder / "run.nc").summary().strip()
    assert json.loads(run("summary", folder / "run.nc", "--json").stdout)["log_evidence"] == finished["log_evidence"]


def test_a_failed_run_ends_with_one(finished, folder):
    result = tc.load(folder / "run.nc")
    first = {name: values[:, :4] for name, values in result.parameters.items()}
    draws = Draws(*(leaf[:, :4] for leaf in result.draws))
    replace(result, draws=draws, parameters=first, unconstrained=first).save(folder / "short.nc")
    done = run("summary", folder / "short.nc")
    assert done.exit_code == 1
    assert done.stdout.startswith("verdict        failed")


def test_report_of_a_file(finished, folder):
    pytest.importorskip("jinja2")
    done = run("report", folder / "run.nc", "--out", folder / "page.html")
    assert done.exit_code == 0, done.output
    assert "page.html" in done.stderr
    assert (folder / "page.html").read_text().startswith("<!DOCTYPE html>")


def test_compare_files(finished, folder):
    (folder / "again.nc").write_bytes((folder / "run.nc").read_bytes())
    words = ["compare", folder / "run.nc", folder / "again.nc", "--prior", "1,3", "--despite", "verdict", "--json"]
    models = json.loads(run(*words).stdout)["models"]
    assert models["again"]["probability"]["value"] == pytest.approx(0.75)
    assert list(models) == ["again", "run"]
    assert "log Bayes factor" in run(*words[:-1]).stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["run", "model"], "'model' is not MODULE:OBJECT"),
        (["run", "nowhere.py:target"], "there is no file nowhere.py"),
        (["run", "nowhere_at_all:target"], "there is no module nowhere_at_all here"),
        (["run", "{folder}/model.py:missing"], "has no 'missing'; it has the targets target."),
        (["run", "{folder}/model.py:number"], "is of type int; make it a tc.Target"),
        (["run", "{folder}/model.py:target", "--method", "magic"], "there is no method 'magic'; choose among gibbs"),
        (["run", "{folder}/model.py:target", "--base", "magic"], "there is no fit 'magic'; choose among auto"),
        (
            ["run", "{folder}/model.py:target", "--out", "no/where/run.nc"],
            "the folder of no/where/run.nc does not exist",
        ),
        (["run", "{folder}/model.py:target", "--seed", "-1"], "seed is -1"),
        (["summary", "missing.nc"], "missing.nc does not exist"),
        (["report", "{folder}/model.py"], "cannot be read as a thermocline result"),
        (["compare", "missing.nc", "other.nc"], "missing.nc does not exist"),
        (["compare", "{folder}/run.nc", "{folder}/short.nc", "--prior", "1,x"], "give 2 numbers with commas"),
    ],
)
def test_bad_words_get_a_sentence_and_two(words, says, folder, finished):
    if not (folder / "short.nc").exists():
        (folder / "short.nc").write_bytes((folder / "run.nc").read_bytes())
    done = run(*(word.format(folder=folder) for word in words))
    assert done.exit_code == 2
    assert says in done.stderr
    assert "Traceback" not in done.output


@pytest.mark.parametrize(
    ("what", "names"), [("methods", METHODS), ("fits", FITS | FITS_OF_DRAWS), ("bases", BASES), ("checks", CHECKS)]
)
def test_list_has_every_registered_name_with_a_sentence(what, names):
    listed = json.loads(run("list", what, "--json").stdout)
    assert set(listed) == set(names)
    assert all(sentence.endswith((".", ",", ")")) or len(sentence) > 20 for sentence in listed.values())
    assert all(name in run("list", what).stdout for name in names)


def test_help_tells_a_newcomer_what_there_is():
    text = run("--help").stdout
    for word in ("run", "summary", "report", "compare", "list", "demo", "Exit status"):
        assert word in text
    assert run().exit_code == 2
    plain = re.sub(r"\s+", " ", run("run", "--help").stdout)
    for word in ("--checkpoint", "--target-error", "--method", "--seed", "--json"):
        assert word in plain


@pytest.mark.slow
def test_interrupted_runs_are_resumed_to_the_same_answer(folder, tmp_path):
    words = ["run", f"{folder}/model.py:target", *SMALL, *LONG, "--json", "--no-progress", "--checkpoint"]
    command = [sys.executable, "-m", "thermocline.cli", *words, str(tmp_path / "kept")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    limit = time.monotonic() + 200
    while not (tmp_path / "kept" / "state.npz").exists() and process.poll() is None and time.monotonic() < limit:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=100)
    assert process.returncode == 130, err
    assert out == ""
    assert f"The run is kept in {tmp_path / 'kept'}; to resume it:" in err
    assert f"thermocline run {folder}/model.py:target" in err
    assert "Traceback" not in err
    resumed = json.loads(run(*words, tmp_path / "kept").stdout)
    straight = json.loads(run(*words, tmp_path / "other").stdout)
    assert resumed["log_evidence"] == straight["log_evidence"]
    assert resumed["run"]["num_gradients"] == straight["run"]["num_gradients"]


def test_names_of_models_are_distinct():
    from pathlib import Path

    assert distinct_names([Path("a/one.nc"), Path("a/two.nc")]) == ["one", "two"]
    assert distinct_names([Path("a/run.nc"), Path("b/run.nc")]) == ["a/run.nc", "b/run.nc"]


def test_the_demonstration_is_a_target_with_a_known_evidence():
    import numpy as np

    target = target_of("thermocline.cli.targets:demonstration")
    x, y = np.meshgrid(np.linspace(-9, 9, 401), np.linspace(-12, 40, 801), indexing="ij")
    import jax

    values = jax.vmap(target)({"x": x.ravel(), "y": y.ravel()})
    cell = (18 / 400) * (52 / 800)
    assert np.log(np.exp(np.asarray(values, float)).sum() * cell) == pytest.approx(-7.0, abs=0.01)

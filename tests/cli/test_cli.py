"""The command: what it prints, what it writes, how it ends, and that Ctrl-C loses nothing."""

import json
import os
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
from thermocline.cli.commands import app, distinct_names
from thermocline.methods import METHODS
from thermocline.records import Draws

MODEL = '''
import jax.numpy as jnp
import thermocline as tc


def log_density(x, data):
    """The log of a Gamma(3) variable, times exp(-2)."""
    return 3 * x - jnp.exp(x) - jnp.log(2.0) - data


target = tc.Target(log_density, 0.5, 2.0)
other = tc.Target(log_density, 0.6, 2.0)
number = 3


def needy(y):
    return y


def make():
    return target
'''
HEAD = "import jax.numpy as jnp\nimport thermocline as tc\n"
BROKEN = {
    "broken.py": HEAD + "x = jpn.zeros(3)\n",
    "unfinished.py": "x = 1\ny = (2\n",
    "wrong.py": HEAD + "def f(x, d):\n    y = d['y']\n\n    return -jnp.sum((x - y) ** 2)\n"
    "target = tc.Target(f, jnp.zeros(3), {'y': jnp.zeros(4)})\n",
    "bad.stan": "parameters { real x; }\nmodel { x ~ normal(0, 1) }\n",
    "typo.json": '{"y": [1 2]}',
}
SMALL = ["--base", "laplace", "--num-chains", "4"]
LENGTH = ["--num-draws", "400"]
LONG = ["--num-draws", "60000"]


def run(*words: str):
    return CliRunner().invoke(app, list(map(str, words)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("cli")
    for name, text in ({"model.py": MODEL} | BROKEN).items():
        (path / name).write_text(text)
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
    assert {"name", "value", "limit", "status", "advice", "meaning", "link"} == set(finished["checks"][0])


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


def test_a_report_is_written_beside_its_run_and_over_nothing(finished, folder):
    pytest.importorskip("jinja2")
    page = folder / "run.html"
    assert run("report", folder / "run.nc").exit_code == 0
    page.write_text("mine")
    refused = run("report", folder / "run.nc")
    assert refused.exit_code == 2
    assert "run.html exists already; write over it with --force" in refused.stderr
    assert page.read_text() == "mine"
    assert run("report", folder / "run.nc", "--force").exit_code == 0
    assert page.read_text().startswith("<!DOCTYPE html>")


def test_a_run_within_max_evaluations(folder):
    done = run("run", f"{folder}/model.py:target", "--max-evaluations", 30_000, "--json")
    assert done.exit_code in (0, 1), done.output
    assert sum(json.loads(done.stdout)["run"]["cost"]["evaluations"].values()) <= 30_000


def test_doctor_names_packages_devices_and_caches():
    said = run("doctor").stdout
    for word in ("thermocline", "jax", "pymc", "devices", "cpu", "compiled Stan models"):
        assert word in said


def test_an_error_of_our_own_has_a_status_of_its_own(monkeypatch):
    monkeypatch.setattr("thermocline.cli.commands.doctors.tables", lambda: [][0])
    done = run("doctor")
    assert done.exit_code == 3
    assert "IndexError" in done.stderr
    assert "thermocline doctor" in done.stderr


def test_the_shell_completes_names():
    words = {"_THERMOCLINE_COMPLETE": "complete_bash", "COMP_WORDS": "thermocline run --method si", "COMP_CWORD": "3"}
    command = [sys.executable, "-c", "from thermocline.cli import app; app(prog_name='thermocline')"]
    done = subprocess.run(command, env=os.environ | words, capture_output=True, text=True, check=False, timeout=100)
    assert done.stdout.split() == ["simulated"], done.stderr


def seconds_of(*words):
    """Processor time of a process, which others do not disturb."""
    before = os.times()
    subprocess.run([sys.executable, *words], capture_output=True, check=False, timeout=100)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


@pytest.mark.long
def test_what_only_prints_takes_no_longer_than_importing(folder):
    importing = min(seconds_of("-c", "import thermocline") for _ in range(3))
    for words in (["--help"], ["run", "missing.py"], ["summary", "missing.nc"], ["list", "methods"], ["doctor"]):
        taken = min(seconds_of("-m", "thermocline.cli", *words) for _ in range(2))
        assert taken < 1.5 * importing, (words, taken, importing)


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
        (["run", "model"], "'model' names no model; write for example model.py"),
        (["run", "nowhere.py:target"], "there is no file nowhere.py"),
        (["run", "nowhere_at_all:target"], "there is no such module here; a file is named with its .py"),
        (["run", "{folder}/model.py:missing"], "has no 'missing'; it has the targets target, other."),
        (["run", "{folder}/model.py:number"], "is of type int; it can be a tc.Target, a PyMC model"),
        (["run", "{folder}/model.py"], "model.py holds several (target, other); name the one that is meant"),
        (["run", "{folder}/model.py:needy"], "needy wants y: what a NumPyro model wants is given by name"),
        (["run", "{folder}/broken.py"], "broken.py, line 3: NameError: name 'jpn' is not defined"),
        (["run", "{folder}/unfinished.py"], "unfinished.py, line 2: SyntaxError: '(' was never closed"),
        (["run", "{folder}/wrong.py"], "wrong.py, line 6: TypeError: "),
        (["run", "{folder}/bad.stan"], "in 'bad.stan', line 2, column"),
        (["run", "{folder}/model.py:target", "--data", "{folder}/typo.json"], "delimiter: line 1 column 10"),
        (["run", "{folder}/model.py:target", "--max-seconds", "-1"], "max_seconds is -1"),
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

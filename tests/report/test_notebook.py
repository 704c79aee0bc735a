"""Notebooks: the example runs and shows progress and tables; objects have a face of their own."""

from pathlib import Path

import numpy as np
import pytest

import thermocline as tc
from thermocline.engine.batch import Blocks
from thermocline.engine.drawn import Chunk, Drawn, running_answer
from thermocline.records import Draws

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.ipynb"))


SHOWN = {  # what each must show, as HTML, besides progress
    "comparing": ("<h4>Target</h4>", "<h4>Parameters under the target</h4>", "<h4>Models</h4>"),
    "many": (),
    "own-sampler": ("<h4>Modes</h4>", "<h4>Parameters under the target</h4>"),
    "periods": ("<h4>Modes</h4>", "<h4>Parameters under the target</h4>"),
}


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_shows_what_it_does(path):
    """Its assertions, which compare with exact answers, are part of it."""
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(path, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "examples are stored without outputs"
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    html = [output["data"].get("text/html", "") for output in outputs if "data" in output]
    assert not any("ipywidgets" in str(output) for output in outputs)
    answer = "log Z " if path.stem in ("comparing", "periods") else ""  # of one target, and of chains that are ours
    assert any("done · " in piece and answer in piece for piece in html), "no progress was shown"
    for title in SHOWN[path.stem]:
        assert any(title in piece for piece in html), title
    has_figure = any("image/png" in output.get("data", {}) for output in outputs)
    assert has_figure == (path.stem != "comparing")


def test_every_example_is_known():
    assert {path.stem for path in EXAMPLES} == set(SHOWN)


def test_a_target_shows_its_parameters_and_data_as_text():
    target = tc.Target(lambda p, d: 0.0, {"<b>": np.zeros((2, 3)), "y": 0.0}, {"z": np.zeros(4)})
    html = target._repr_html_()
    assert "&lt;b&gt;[2, 3], y" in html
    assert "<b>" not in html
    assert "z[4]" in html


def test_a_fit_shows_its_log_zeta_and_story():
    html = tc.BaseFit(tc.Gaussian.diagonal(0.0, 1.0), -3.25, 1200, "lower bound", notes=("2 < 3 modes.",))._repr_html_()
    for part in ("Gaussian", "-3.25 (lower bound)", "1,200", "2 &lt; 3 modes."):
        assert part in html, part


def test_the_running_answer_is_the_evidence_so_far():
    generator = np.random.default_rng(0)
    weights = generator.normal(size=(2, 40)) * 0.1
    zeros = np.zeros((2, 40))
    stages = np.zeros((2, 40, 2, 0))
    rest = zeros, zeros, zeros, zeros, zeros, stages, zeros
    draws = Draws(zeros[..., None], zeros, weights, weights + 1.0, zeros, *rest)

    def shown(draws, log_zeta):
        of_one = Draws(*(leaf[None] for leaf in draws))
        return running_answer(Drawn(Blocks(1, 1), [[Chunk.of(of_one, np.ones(1, bool))]]), np.array([log_zeta]))

    assert shown(draws, -3.0).startswith("log Z -1.98")
    assert shown(Draws(*(leaf[:, :4] for leaf in draws)), -3.0) is None
    assert shown(draws._replace(log_weight_base=zeros - np.inf), 0.0) is None

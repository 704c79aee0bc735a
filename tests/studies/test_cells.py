"""The truths of the calibration's cells, against sums over grids and draws."""

import jax
import numpy as np
import pytest

from studies.study_cells import CELLS, cauchys, change_point, spike_on_tail


def test_the_change_point_has_its_evidence_by_a_grid_over_all_three():
    problem = change_point().problem
    logit, mean = np.log(1.5) + 0.1 * (np.arange(-95, 95) + 0.5), np.linspace(-1.5, 2.5, 81)
    grid = np.stack(np.meshgrid(logit, mean, mean, indexing="ij"), axis=-1).reshape(-1, 3)
    with jax.enable_x64(True):
        heights = np.asarray(jax.vmap(lambda x: problem.target.log_density(x, problem.target.data))(grid))
    total = np.exp(heights).sum() * (logit[1] - logit[0]) * (mean[1] - mean[0]) ** 2
    assert np.log(total) == pytest.approx(problem.log_evidence, abs=1e-3)
    late = np.exp(heights[grid[:, 0] > np.log(1.5)]).sum() / np.exp(heights).sum()
    assert late == pytest.approx(problem.mean, abs=2e-3)


def test_the_means_of_the_others_by_draws():
    generator = np.random.default_rng(0)
    wide = generator.normal(size=(400_000, 2))
    rows = np.where(generator.uniform(size=(400_000, 1)) < 0.9, wide, [3.5, 0.0] + 0.05 * wide)
    pairs = (spike_on_tail().problem, rows), (cauchys().problem, generator.standard_cauchy((400_000, 1)))
    for problem, draws in pairs:
        hits = np.array(problem.function(draws.T))
        assert hits.mean() == pytest.approx(problem.mean, abs=4 * hits.std() / np.sqrt(hits.size))


def test_every_cell_starts_where_its_density_is():
    for name, made in CELLS.items():
        problem = made().problem
        target = problem.target
        arguments = (target.initial_position,) if target.data is None else (target.initial_position, target.data)
        assert np.isfinite(target.log_density(*arguments)), name

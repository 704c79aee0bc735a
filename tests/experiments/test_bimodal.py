"""The bimodal experiment's quadratures against the paper's own equations."""

import numpy as np
import pytest

from experiments.bimodal.problem import BASE_DEVIATION, BASE_MEAN
from experiments.bimodal.studies import BETAS, MATCHED, Given, beta_marginal, log_base, log_target, marginals


@pytest.mark.parametrize("error", [-3.0, 0.0, 2.0])
def test_the_density_of_beta_has_the_ratio_of_evidence_to_zeta_at_its_ends(error):
    density = beta_marginal(Given("", 1.0, 6.0, error))
    np.testing.assert_allclose(np.log(density[-1] / density[0]), -error, atol=1e-8)
    np.testing.assert_allclose(np.trapezoid(density, BETAS), 1.0, atol=1e-12)


def test_the_density_of_beta_lies_within_the_papers_bounds():
    """Appendix A: between exp(-beta d(b→t)), exp(-(1 - beta) d(t→b)) and 1, times the density at 0, for zeta = Z."""
    row = marginals()[0]
    relative = beta_marginal(MATCHED)
    relative = relative / relative[0]
    assert np.all(relative <= 1 + 1e-9)
    assert np.all(relative >= np.exp(-BETAS * row["kl_base_to_target"]) - 1e-9)
    assert np.all(relative >= np.exp(-(1 - BETAS) * row["kl_target_to_base"]) - 1e-9)


def test_divergences_are_those_of_draws():
    generator = np.random.default_rng(0)
    draws = generator.normal(BASE_MEAN, BASE_DEVIATION, 100_000)
    ratio = log_base(MATCHED, draws) - log_target(draws)
    error = ratio.std() / np.sqrt(ratio.size)
    assert abs(ratio.mean() - marginals()[0]["kl_base_to_target"]) < 4 * error

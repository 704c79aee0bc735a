"""Tails and quantiles are those of scipy.stats, which the library does not import."""

import numpy as np
import pytest
from scipy import stats

from thermocline.support import tails

DOFS = np.array([1.0, 2.5, 30.0, 1e6, np.inf])


@pytest.mark.parametrize("value", [0.0, 0.7, 3.0, 12.0])
def test_tails(value):
    np.testing.assert_allclose(tails.normal_tail(value), stats.norm.sf(value), rtol=1e-12)
    np.testing.assert_allclose(tails.student_log_tail(value, DOFS), stats.t.logsf(value, DOFS), rtol=1e-9)
    np.testing.assert_allclose(tails.fisher_tail(value, 7, 90), stats.f.sf(value, 7, 90), rtol=1e-9)


@pytest.mark.parametrize("probability", [0.5, 0.9, 0.995])
def test_quantiles(probability):
    np.testing.assert_allclose(
        tails.student_quantile(probability, DOFS), stats.t.ppf(probability, DOFS), rtol=1e-8, atol=1e-12
    )

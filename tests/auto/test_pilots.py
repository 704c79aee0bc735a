"""When fitting ends: what a pilot shows of a base, and how many components its draws tell the shapes of."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import thermocline as tc
from tests.auto.test_thin import banana, designer
from thermocline.auto import design, pilots
from thermocline.engine.progress import Silent
from thermocline.support.precision import computing_in


def skewed(x: jax.Array) -> jax.Array:
    """Twelve exponentials, each in its logarithm: chains mix at once, and no Gaussian fits."""
    return jnp.sum(x - jnp.exp(x))


def test_a_pilot_whose_chains_get_about_leaves_the_base_as_it_is():
    with computing_in("float64"):
        made = designer(skewed, np.zeros(12), 0)
        made.first()
        before = made.best
        assert not pilots.pilot(0, 1, made, Silent())
        assert made.best.mixture is before.mixture
        assert made.best.share <= before.share  # by all that has been seen since


def test_a_pilot_whose_chains_hardly_move_lays_a_mixture_along_their_draws(monkeypatch: pytest.MonkeyPatch):
    """The same pilot as one that would have to show more: the arms of a banana then get components of their own."""
    monkeypatch.setattr(pilots, "are_explored", lambda draws, level, error: False)
    with computing_in("float64"):
        made = designer(banana, np.full(2, 0.1), 1)
        made.first()
        before = made.best
        assert pilots.pilot(1, 1, made, Silent())
        assert made.best.mixture.size > before.mixture.size
        assert made.best.share > before.share


def test_nothing_is_covered_where_draws_tell_the_shapes_of_no_more_components(monkeypatch: pytest.MonkeyPatch):
    """Of 90 dimensions 4096 draws tell no covariance: 90 * 93 / 2 = 4185 numbers."""

    def never(*given):
        raise AssertionError("ascents to thin places")

    monkeypatch.setattr(design, "thin_places", never)
    with computing_in("float64"):
        wide = tc.Target(lambda x: jnp.sum(jax.scipy.stats.norm.logpdf(x)), np.zeros(90))
        made = designer(wide.log_density, np.zeros(90), 0)
        made.first()
        made.cover()
        few = designer(lambda x: jnp.sum(jax.scipy.stats.norm.logpdf(x)), np.zeros(3), 0)
        few.first()
        with pytest.raises(AssertionError, match="thin places"):
            few.cover()

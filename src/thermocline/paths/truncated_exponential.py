r"""The exponential law truncated to [0, 1], $p(\beta) \propto e^{\beta\Delta}$ (eq. beta-gvn-x-density).

$\Delta$ here is the *gain* of log density from 0 to 1, so minus the paper's $\Delta(x)$.
"""

from typing import Any

import jax
import jax.numpy as jnp


def log_mass(gain: Any, namespace: Any = jnp) -> Any:
    r"""Log of $\int_0^1 e^{\beta\Delta}\,d\beta = (e^\Delta - 1)/\Delta$.

    Written as $\Delta/2 + \log(\sinh z / z)$ with $z = |\Delta|/2$: even in $z$, so one branch serves both signs and
    nothing overflows. Below $z = 10^{-2}$ two terms of the series are exact to rounding.
    """
    z = namespace.abs(gain) / 2
    small = z < 1e-2
    safe = namespace.where(small, 1.0, z)  # keeps the gradient finite at 0
    log_sinhc = safe + namespace.log1p(-namespace.exp(-2 * safe)) - namespace.log(2 * safe)
    return gain / 2 + namespace.where(small, z**2 / 6 - z**4 / 180, log_sinhc)


def quantile(gain: jax.Array, probability: jax.Array) -> jax.Array:
    """The beta in [0, 1] below which a draw falls with `probability`, up to reflection.

    Measured from the likelier end, where resolution is wanted: for a positive gain it is
    the upper quantile. A uniform `probability` gives an exact draw either way.
    """
    rate = jnp.abs(gain)
    small = rate < 1e-6
    safe = jnp.where(small, 1.0, rate)
    distance = jnp.where(small, probability, -jnp.log1p(probability * jnp.expm1(-safe)) / safe)
    return jnp.where(gain > 0, 1 - distance, distance)

r"""Draws of the base and of the chains as one sample: bridge sampling between two states of which one is normalised.

Of $n_0$ independent draws of the base and $n_1$ draws of chains, which have density base $\cdot\,N(r)/C$ and count for
$\tilde n_1$ independent ones, each gets the weight $a/d$. Here $a$ is 1 or $\tilde n_1/n_1$, and
$d = n_0 + \tilde n_1 N(r)/C$ is what density both have together, over the base's. The constant solves
$\sum a N/d = C \sum a/d$, and $Z/\zeta = \sum a e^r/d$ over $\sum a/d$ (Meng & Wong 1996; Shirts & Chodera 2008).

With $p = \tilde n_1 N/(C d)$, the chance that a draw at this r is a chain's, $a/d = a(1 - p)/n_0$, and the equation
for C says that the weights $a/d$ sum to one. Draws off the target's support have their part in that sum, and so no log
of the support is to be added.
"""

from typing import NamedTuple

import numpy as np

from thermocline.estimators.batches import autocorrelation_time
from thermocline.estimators.stages import root_between
from thermocline.paths.laws import Law, log_masses
from thermocline.records import Draws
from thermocline.support import special

NUM_PASSES = 3  # for the effective share, on which its own definition depends a little

Pair = tuple[np.ndarray, np.ndarray]  # at the base's draws, (1, draw), and at the chains', (chain, draw)


class TwoStates(NamedTuple):
    """What both sets of draws are to the estimates: functions of r, and weights."""

    log_ratio: Pair
    log_mass: Pair  # log N(r)
    log_weight_base: Pair  # log a/d; the weights sum to one
    log_share: Pair  # log p, of the chance that a draw at this r is a chain's
    log_constant: float  # log C

    @property
    def log_weight_target(self) -> Pair:
        """Log of a e^r/d."""
        return self.log_weight_base[0] + self.log_ratio[0], self.log_weight_base[1] + self.log_ratio[1]


def pooled(pair: Pair) -> np.ndarray:
    """Flat: the base's draws, then those of one chain after the other."""
    return np.concatenate([pair[0].ravel(), pair[1].ravel()])


def combine(
    base_log_ratio: np.ndarray,
    base_log_mass: np.ndarray,
    chain_log_ratio: np.ndarray,
    chain_log_mass: np.ndarray,
    num_effective: float,
) -> TwoStates:
    """Weights of all draws from r and log N(r), flat for the base's and (chain, draw) for the chains'.

    `num_effective` is the number of independent draws that the chains' count for, and best known before they were
    made. Without draws of the base this is the paper's estimator; with none effective, importance sampling.
    """
    log_ratios = np.reshape(base_log_ratio, (1, -1)).astype(float), np.asarray(chain_log_ratio, float)
    log_masses = np.reshape(base_log_mass, (1, -1)).astype(float), np.asarray(chain_log_mass, float)
    num_chain = log_masses[1].size
    unit = np.median(log_masses[1]) if num_chain else 0.0  # of N, which is any: what is solved for is then of order one
    with np.errstate(divide="ignore", invalid="ignore"):
        log_base, log_effective = np.log([log_masses[0].size, num_effective if num_chain else 0.0])
        base_mass, chain_mass = log_masses[0] - unit, log_masses[1] - unit
        log_constant = _log_constant(base_mass, chain_mass, log_base, log_effective)
        base_inverse, base_share = _log_parts(base_mass + log_effective - log_constant, log_base)
        chain_inverse, chain_share = _log_parts(chain_mass + log_effective - log_constant, log_base)
        log_weights = base_inverse, chain_inverse + log_effective - np.log(num_chain)
    rounding = special.logsumexp(pooled(log_weights))
    log_weights = log_weights[0] - rounding, log_weights[1] - rounding
    return TwoStates(log_ratios, log_masses, log_weights, (base_share, chain_share), float(log_constant + unit))


def states_of(law: Law, base_log_ratio: np.ndarray, draws: Draws) -> TwoStates | None:
    """Both states of a run whose beta followed `law`; None without draws of the base or weights.

    What a draw of a chain counts for is learned from the first half of them: of a run that doubles, the round before.
    """
    chain_log_mass = -np.asarray(draws.log_weight_base, float)
    if not base_log_ratio.size or not np.isfinite(chain_log_mass).all():
        return None
    base_log_mass = log_masses(law, base_log_ratio)
    share = effective_share(base_log_mass, chain_log_mass[:, : -(-chain_log_mass.shape[1] // 2)])
    return combine(base_log_ratio, base_log_mass, draws.log_ratio, chain_log_mass, share * chain_log_mass.size)


def _log_parts(log_chain: np.ndarray, log_base: float) -> Pair:
    """Log of 1/d and of p, from the logs of both terms of d; a difference that is none is of an N of zero."""
    log_chain = np.where(np.isnan(log_chain), -np.inf, log_chain)
    log_odds = log_chain - log_base
    log_share = special.log_expit(log_odds)
    return np.where(log_odds > 0, log_share - log_chain, special.log_expit(-log_odds) - log_base), log_share


def _log_constant(base_mass: np.ndarray, chain_mass: np.ndarray, log_base: float, log_effective: float) -> float:
    r"""Log C, at which the base's draws pass for a chain's as often as the chains' pass for the base's.

    $\sum_{base} p = (\tilde n_1/n_1) \sum_{chains} (1 - p)$ is Bennett's equation. The log of one side over the other
    falls with log C and is nearly straight. Both sides are sums in logs: nothing overflows. Minus infinity where no
    draw of the base has N > 0.
    """
    if np.isneginf(log_base):
        return float(np.log(chain_mass.size) - special.logsumexp(-chain_mass))
    if np.isneginf(log_effective):
        return float(special.logsumexp(base_mass) - log_base)
    reached, met = base_mass[np.isfinite(base_mass)], chain_mass.ravel()
    if not reached.size:
        return -np.inf
    tilt = log_effective - log_base
    low = min(reached.min(), met.min()) + tilt - max(log_effective - np.log(reached.size), 0.0) - 1
    high = max(reached.max(), met.max()) + tilt + max(-tilt, 0.0) + 1
    start = (special.logsumexp(reached) - np.log(reached.size) + np.log(met.size) - special.logsumexp(-met)) / 2

    def equation(centre: float) -> tuple[float, float]:
        log_up, log_down = special.log_expit(reached + tilt - centre), special.log_expit(centre - tilt - met)
        up, down = special.logsumexp(log_up), special.logsumexp(log_down)
        slope = np.exp(log_up - up) @ -np.expm1(log_up) + np.exp(log_down - down) @ -np.expm1(log_down)
        return up - down - log_effective + np.log(met.size), slope

    return float(root_between(equation, low, high, np.clip(start, low, high), 1e-13))


def effective_share(base_log_mass: np.ndarray, chain_log_mass: np.ndarray) -> float:
    """How many independent draws a draw of a chain counts for, from the autocorrelation of its p, pooled over chains.

    C rests on p, which is bounded; r may have no variance. To be fixed before the draws are made that it weights: found
    on the round before.
    """
    share = 1.0
    for _ in range(NUM_PASSES):
        states = combine(base_log_mass, base_log_mass, chain_log_mass, chain_log_mass, share * chain_log_mass.size)
        share = 1 / autocorrelation_time(np.exp(states.log_share[1]))
    return share

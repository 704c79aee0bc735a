"""`fit_auto`: from a target alone to a base that covers its modes; the default of `sample`."""

from contextlib import closing
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from thermocline.bases import BaseFit, Gaussian, Mixture, StudentT
from thermocline.bases.advi import fit_advi
from thermocline.bases.moments import fit_moments
from thermocline.bases.population import Population, adapt_population, draw_population, learn_from
from thermocline.bases.weighted import systematic_resample
from thermocline.explore import Exploration, Lengths, explore
from thermocline.methods import GibbsTempering
from thermocline.modes.local_mixture import (
    MOST_COMPONENTS,
    LocalFit,
    evened,
    fit_of_mode,
    is_new,
    local_fits,
    mixture_of,
    refitted,
)
from thermocline.modes.search import GROUP, Found, find_modes, spread_starts
from thermocline.precision import cast, computing_in, to_numpy
from thermocline.progress import Reporter, reporter_for
from thermocline.target import Target, check_target

GOOD_SHARE = 0.3  # effective share of a fit's own draws from which it needs no pilot
POOR_SHARE = 0.02  # below which fits at optima are not to be relied on
MANY_UNSEEN = 0.02  # chance of a new mode at the next start from which a list of modes is hopeless
MOST_PILOTS = 3
PILOT = Lengths(num_chains=16, num_warmup=300, num_draws=300, most_draws=300)
BROAD_WEIGHT = 0.05  # of the component that goes on looking for modes between and around those known
WORTH_A_PILOT = 0.5  # nats of divergence from the target that one pilot saved for another to follow
WORTH_A_COMPONENT = 0.05  # nats of divergence from the target that each must save, for it is paid for at every step
FEWEST_EFFECTIVE = 50  # draws of the pool that must count for it to tell


class Knowledge(NamedTuple):
    """What rounds have learned: optima, a fit for each mode, and draws weighted for the target."""

    found: Found
    fits: list[LocalFit]
    pool: Population  # draws of the fits and of pilots, with weights that account for both
    num_gradients: int
    story: tuple[str, ...]
    has_piloted: bool = False


def fit_auto(
    target: Target,
    *,
    seed: int = 0,
    target_error: float = 0.05,
    precision: str = "float64",
    progress: bool = False,
) -> BaseFit:
    """A base that covers the modes of the target, found by many starts and pilot runs.

    Gaussian where one is as good; else a mixture with a component for each mode that matters, of which those
    lighter than a tenth of `target_error` in all are pruned.
    """
    with computing_in(precision), closing(reporter_for(progress)) as reporter:
        target = cast(target, precision)
        check_target(target)
        return fit_in_rounds(target, seed, target_error, reporter)


def fit_in_rounds(target: Target, seed: int, target_error: float, reporter: Reporter) -> BaseFit:
    """Search, fit locally, explore with pilots while the fit is poor, choose."""
    reporter.phase("searching for modes", None)
    known = first_knowledge(target, seed)
    fit = chosen_base(known, target, target_error)
    for pilot in range(MOST_PILOTS):
        if pilot == 0 and known.pool.effective_share > GOOD_SHARE and not has_many_modes(known.found):
            break
        reporter.phase("pilot", None)
        known = after_pilot(known, target, fit, seed + pilot + 1, reporter)
        before, fit = fit, chosen_base(known, target, target_error)
        if divergence(known.pool, before.base, target) - divergence(known.pool, fit.base, target) < WORTH_A_PILOT:
            break
    return fit._replace(num_gradients=known.num_gradients, modes=(known.found, known.fits), story=known.story)


def first_knowledge(target: Target, seed: int) -> Knowledge:
    """From the starts: optima, local fits, and draws of these.

    Where the fits cover little, or there are none, a variational fit joins them: the density may be highest far
    from its mass, or unbounded.
    """
    found = find_modes(target, spread_starts(target, seed))
    fits, spent = local_fits(found)[:MOST_COMPONENTS], found.num_gradients
    story = [f"{found.num_starts} starts found {found.num_modes} modes ({found.share_converged:.0%} of them arrived)."]
    key, pool = jax.random.key(seed), None
    if fits:
        fits, pool, cost = with_draws(key, target, fits)
        spent += cost
    if pool is None or pool.effective_share < POOR_SHARE:
        variational, cost, sentences = variational_fit(target, seed)
        story, before = [*story, *sentences], found.num_gradients
        found, fits = with_variational(target, found, variational, seed)
        fits, pool, evaluated = with_draws(key, target, fits)
        spent += cost + evaluated + found.num_gradients - before
    return Knowledge(found, fits, pool, spent, tuple(story))


def with_draws(key: jax.Array, target: Target, fits: list[LocalFit]) -> tuple[list[LocalFit], Population, int]:
    """The fits as population Monte Carlo improves them, draws of them, and the evaluations it took."""
    mixture, pool, cost = adapt_population(key, target, mixture_of(fits, target.initial_position))
    return refitted(fits, mixture), pool, cost


def variational_fit(target: Target, seed: int) -> tuple[LocalFit, int, tuple[str, ...]]:
    """ADVI's fit from the initial position; failing that, a guess of unit scale."""
    fit = fit_advi(target, seed=seed, precision=str(ravel_pytree(target.initial_position)[0].dtype))
    mean, scale = (np.asarray(leaf) for leaf in (ravel_pytree(fit.base.mean)[0], fit.base.scale_tril))
    if not (np.isfinite(fit.log_zeta) and np.isfinite(mean).all() and np.isfinite(scale).all()):
        mean, scale = np.asarray(ravel_pytree(target.initial_position)[0]), np.ones_like(mean)
    log_mass = float(np.nan_to_num(fit.log_zeta, nan=-1e300, neginf=-1e300))
    fitted = LocalFit(mean, np.diag(scale**2), log_mass, mean, np.nan, "variational fit", np.nan)
    return fitted, fit.num_gradients, fit.story


def with_variational(target: Target, found: Found, variational: LocalFit, seed: int) -> tuple[Found, list[LocalFit]]:
    """The fits, where that of the mode to which most draws of the variational fit climb gives way to it."""
    generator = np.random.default_rng([seed, 0xAD71])
    deviations = np.sqrt(np.diag(variational.covariance))
    starts = variational.mean + deviations * generator.normal(size=(GROUP, deviations.size))
    found = find_modes(target, starts, found)
    if found.num_modes == 0:
        return found, [variational]
    home = int(np.argmax(np.bincount(found.mode, found.counts[:, 1], minlength=found.num_modes)))
    fits = [fit_of_mode(found, mode) for mode in range(found.num_modes)]
    fits[home] = fits[home]._replace(
        mean=variational.mean, covariance=variational.covariance, log_mass=variational.log_mass
    )
    return found, sorted(fits, key=lambda fit: -fit.log_mass)[:MOST_COMPONENTS]


def has_many_modes(found: Found) -> bool:
    """Whether a list of modes is hopeless: too many to hold, or new ones still turning up."""
    return found.num_modes > MOST_COMPONENTS or found.unseen > MANY_UNSEEN


def chosen_base(known: Knowledge, target: Target, target_error: float) -> BaseFit:
    """The Gaussian with the pool's moments, or what is closer: for one mode Student's t, for more a mixture.

    Divergences are measured on the pool, which holds draws of all fits and pilots. Where the pool cannot tell,
    because few of its draws count, the fits stand as they are; before the first pilot it cannot speak for a target
    of many modes.
    """
    pool, size = known.pool, known.pool.effective_share * known.pool.log_weight.size
    everything = mixture_of(evened(known.fits), target.initial_position)
    if has_many_modes(known.found) and not known.has_piloted:
        return BaseFit(fit_moments(everything).base, pool.log_evidence)
    if size < FEWEST_EFFECTIVE:
        return BaseFit(everything if len(known.fits) > 1 else everything.component(0), pool.log_evidence)
    kept = pruned(known.fits, target_error / 10)
    gaussian = gaussian_of(pool, target)
    other = heavy_tailed(gaussian) if len(kept) == 1 else mixture_of(kept, target.initial_position)
    saved = divergence(pool, gaussian, target) - divergence(pool, other, target)
    return BaseFit(other if saved > WORTH_A_COMPONENT * (1 + len(kept)) else gaussian, pool.log_evidence)


def heavy_tailed(gaussian: Gaussian) -> StudentT:
    """Student's t with the moments of a Gaussian: for one mode with arms or necks that no Gaussian reaches."""
    degrees = StudentT(gaussian.mean, gaussian.scale_tril).degrees_of_freedom
    return StudentT(gaussian.mean, np.sqrt(1 - 2 / degrees) * np.asarray(gaussian.scale_tril))


def gaussian_of(pool: Population, target: Target) -> Gaussian:
    """The Gaussian with the pool's mean and covariance (the paper's proposal)."""
    return fit_moments((pool.position, pool.log_weight), like=target.initial_position).base


def pruned(fits: list[LocalFit], most_lost: float) -> list[LocalFit]:
    """The heaviest fits that hold all but `most_lost` of the mass."""
    order = sorted(fits, key=lambda fit: -fit.log_mass)
    mass = np.exp([fit.log_mass for fit in order] - np.logaddexp.reduce([fit.log_mass for fit in order]))
    held = np.cumsum(mass)
    return order[: int(np.searchsorted(held, 1 - most_lost)) + 1]


def broadened(mixture: Mixture) -> Mixture:
    """The mixture with a broad component over all of it, which goes on looking for modes; if there is room for one."""
    number = mixture.num_components
    if number == len(mixture.log_weights):
        return mixture
    gaussian = fit_moments(mixture).base
    broad = Gaussian(gaussian.mean, np.sqrt(2.0) * np.asarray(gaussian.scale_tril)).whitened()
    log_weights = np.append(mixture.log_weights[:number] + np.log1p(-BROAD_WEIGHT), np.log(BROAD_WEIGHT))
    return Mixture.of([*(mixture.component(i) for i in range(number)), broad], log_weights)


def divergence(pool: Population, base: Any, target: Target) -> float:
    """KL divergence from the target to a base, on the pool."""
    log_base = to_numpy(_log_densities(base, target, pool.position))
    weight = np.exp(pool.log_weight - pool.log_weight.max())
    is_used = weight > 0
    ratio = pool.log_target[is_used] - log_base[is_used]
    return float(weight[is_used] @ ratio / weight.sum() - pool.log_evidence)


@jax.jit
def _log_densities(base: Any, target: Target, positions: jax.Array) -> jax.Array:
    unravel = ravel_pytree(target.initial_position)[1]
    return jax.vmap(lambda position: base.log_density(unravel(position)))(positions)


def after_pilot(known: Knowledge, target: Target, fit: BaseFit, seed: int, reporter: Reporter) -> Knowledge:
    """A short run on the path from the present base, and what it adds."""
    base = broadened(fit.base) if isinstance(fit.base, Mixture) else fit.base
    base = cast(base, str(known.pool.position.dtype))
    went = explore(seed, target, base, fit.log_zeta, GibbsTempering(), PILOT, reporter)
    draws = went.outcome.draws
    flat = draws.position.reshape(-1, draws.position.shape[-1])
    index = systematic_resample(draws.log_weight_target.ravel(), GROUP, seed)
    found = find_modes(target, flat[index], known.found)
    fresh = [f for f in local_fits(found)[:MOST_COMPONENTS] if f.found_by == "draws" and is_new(f, known.fits)]
    fits = sorted([*known.fits, *fresh], key=lambda fit: -fit.log_mass)[:MOST_COMPONENTS]
    mixture = mixture_of(fits, target.initial_position)
    population = draw_population(jax.random.key(seed), target, mixture)
    pool = pooled(population, mixture, went, target)
    if not has_many_modes(found):  # where there are, the fits are but a sample of the modes
        mixture = learn_from(mixture, pool.position, pool.log_weight)
    gradients = int(draws.num_gradients.sum()) + went.outcome.warmup_gradients + population.log_weight.size
    story = f"A pilot of {draws.log_ratio.size} draws: log Z about {pool.log_evidence:.2f}, {len(fresh)} new modes."
    return Knowledge(
        found,
        refitted(fits, mixture),
        pool,
        known.num_gradients + gradients + found.num_gradients - known.found.num_gradients,
        (*known.story, story),
        True,
    )


def pooled(population: Population, mixture: Mixture, went: Exploration, target: Target) -> Population:
    """Draws of the fits and of a pilot together, with deterministic-mixture weights (Owen and Zhou 2000).

    A pilot's draws have density base(x) N(r(x)), whose constant is the mean of 1/N over them; being correlated,
    they count for a tenth of their number.
    """
    draws, path, law = went.outcome.draws, went.path, went.outcome.tuning.law
    positions = np.concatenate([population.position, draws.position.reshape(-1, draws.position.shape[-1])])
    log_target, log_mixture, log_pilot = to_numpy(_log_densities_of_pool(path, mixture, law, positions))
    log_weight_base = draws.log_weight_base
    log_pilot = log_pilot + np.logaddexp.reduce(log_weight_base, axis=None) - np.log(log_weight_base.size)
    counts = population.log_weight.size, 0.1 * log_weight_base.size
    shares = np.log(np.array(counts) / sum(counts))
    log_proposal = np.logaddexp(shares[0] + log_mixture, shares[1] + log_pilot)
    log_weight = log_target - log_proposal
    log_weight[: counts[0]] += shares[0] - np.log(counts[0] / len(positions))
    log_weight[counts[0] :] += shares[1] - np.log(log_weight_base.size / len(positions))
    return Population(positions, log_weight, log_target)


@jax.jit
def _log_densities_of_pool(path: Any, mixture: Mixture, law: Any, positions: jax.Array) -> tuple[jax.Array, ...]:
    def one(position: jax.Array) -> tuple[jax.Array, ...]:
        log_base, log_ratio = path.log_base(position), path.log_ratio(position)
        log_ratio = jnp.where(jnp.isfinite(log_ratio), log_ratio, -jnp.inf)
        log_target = log_ratio + log_base + path.log_zeta
        return log_target, mixture.log_density(path.unravel(position)), log_base + law.log_mass(log_ratio)

    return jax.vmap(one)(positions)

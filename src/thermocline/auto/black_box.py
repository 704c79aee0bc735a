"""`fit_auto`: from a target alone to a base that covers its modes; the default of `sample`."""

from contextlib import closing
from typing import Any

import numpy as np

from thermocline.auto.choice import (
    WORTH_A_SHAPE,
    Knowledge,
    chosen_base,
    divergence,
    gaussian_of,
    has_many_modes,
    piloting,
    reshaped,
    tailed,
)
from thermocline.bases import BaseFit, log_densities
from thermocline.engine.explore import Exploration, Lengths, explore, resampled
from thermocline.engine.progress import Reporter, reporter_for
from thermocline.evaluator import Evaluator
from thermocline.fits.advi import fit_advi
from thermocline.fits.importance import ImportanceSample, adapt_by_importance, draw_importance, em_update
from thermocline.fits.lbfgs import maximise
from thermocline.methods import GibbsTempering
from thermocline.modes.hopping import hop
from thermocline.modes.local_fits import (
    MOST_COMPONENTS,
    LocalFit,
    fit_of_mode,
    is_new,
    local_fits,
    mixture_of,
    refitted,
)
from thermocline.modes.search import GROUP, Found, find_modes, spread_starts
from thermocline.paths.laws import log_masses
from thermocline.support.flat import ravelled
from thermocline.support.precision import cast, computing_in, to_numpy
from thermocline.target import Target, check_target

POOR_SHARE = 0.02  # below which fits at optima are not to be relied on
WIDEST_FIT = 1e50  # deviation beyond which a variational fit has run off
NEARLY_ALL = 0.7  # effective share of the fits' own draws from which they need no pilot: these see only what fits cover
MOST_PILOTS = 3
SETTLED = 0.1  # nats of divergence from the target at which a mixture follows its shape
MOST_PILOTS_BETWEEN_STARS = 2  # each is dear there
PILOT = Lengths(num_chains=16, num_warmup=300, num_draws=300, most_draws=300)
FITTING, SHAPING = 0xF17, 0x5BA9  # keep the draws of fits apart from those of the runs with the same seed
WORTH_A_PILOT = 0.5  # nats of divergence from the target that one pilot saved for another to follow


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
        evaluate = Evaluator(target, precision)
        check_target(evaluate.target)
        return fit_in_rounds(evaluate, seed, target_error, reporter)


def fit_in_rounds(evaluate: Evaluator, seed: int, target_error: float, reporter: Reporter) -> BaseFit:
    """Search, fit locally, explore with pilots while the fit is poor, choose."""
    reporter.phase("searching for modes", None)
    known, like = first_knowledge(evaluate, seed), evaluate.target.initial_position
    if has_many_modes(known.found):
        return fit_constellation(known, evaluate, seed, target_error, reporter)
    fit = chosen_base(known, like, target_error)
    for pilot in range(MOST_PILOTS):
        if pilot == 0 and known.pool.effective_share > NEARLY_ALL:
            break
        reporter.phase("pilot", None)
        known = after_pilot(known, evaluate, fit, seed + pilot + 1, reporter)
        before, fit = fit, chosen_base(known, like, target_error)
        if divergence(known.pool, before.base) - divergence(known.pool, fit.base) < WORTH_A_PILOT:
            break
    fit = fit._replace(num_gradients=known.num_gradients, story=(*known.story, *fit.story))
    fit = tailed(known.pool, fit)
    if known.has_piloted:
        fit = followed(known, fit, evaluate, target_error, seed, reporter)
    return fit._replace(num_gradients=fit.num_gradients + evaluate.num_rows, modes=(known.found, known.fits))


def followed(
    known: Knowledge, fit: BaseFit, evaluate: Evaluator, target_error: float, seed: int, reporter: Reporter
) -> BaseFit:
    """A mixture laid along the pool where that is far better, and laid anew while pilots from it find more mass.

    A pilot from a poor base goes only part of the way along an arm; one from a mixture that ends there goes on.
    """
    generator, spent = np.random.default_rng([seed, SHAPING]), fit.num_gradients
    fit, is_shaped = reshaped(generator, evaluate, known.pool, fit, WORTH_A_SHAPE)
    for pilot in range(MOST_PILOTS if is_shaped else 0):
        reporter.phase("pilot", None)
        base = cast(fit.base, str(known.pool.position.dtype))
        sample = draw_importance(generator, evaluate, fit.base)
        went = explore(seed + 100 + pilot, evaluate.target, base, fit.log_zeta, GibbsTempering(), PILOT, reporter)
        pool = pooled(sample, fit.base, went, evaluate)
        spent += gradients_of(went)
        gain, missed = pool.log_evidence - sample.log_evidence, divergence(pool, fit.base)
        fit, is_shaped = reshaped(generator, evaluate, pool, fit, 0.0)
        if not is_shaped or (abs(gain) < target_error / 5 and missed < SETTLED):
            break
    return fit._replace(num_gradients=spent)


def fit_constellation(
    known: Knowledge, evaluate: Evaluator, seed: int, target_error: float, reporter: Reporter
) -> BaseFit:
    """A Gaussian about every optimum that hops and pilots find, for a target of more modes than one can list.

    The modes of the census are the highest of these.
    """
    reporter.phase("hopping between modes", None)
    like, generator = evaluate.target.initial_position, np.random.default_rng([seed, FITTING])
    stars = hop(evaluate, known.found.optima, seed, target_error / 20)
    story = [*known.story, f"{stars.num_hops} hops from these found {len(stars.optima.position)} optima."]
    spent, share_new, pool = known.num_gradients, 1.0, known.pool
    for pilot in range(MOST_PILOTS_BETWEEN_STARS):
        if share_new < target_error / 5:
            break
        base = stars.base(like)
        sample = draw_importance(generator, evaluate, base)
        reporter.phase("pilot", None)
        cast_base = cast(base, evaluate.precision)
        went = explore(
            seed + pilot + 1, evaluate.target, cast_base, sample.log_evidence, GibbsTempering(), PILOT, reporter
        )
        pool = pooled(sample, base, went, evaluate)
        share_new, stars = stars.joined_by(maximise(evaluate, resampled(went, seed, GROUP)))
        spent += gradients_of(went)
        story.append(f"A pilot: log Z about {pool.log_evidence:.2f}, {share_new:.1%} of its draws at unknown optima.")
    best = min((stars.base(like), gaussian_of(pool, like)), key=lambda base: divergence(pool, base))
    found = find_modes(evaluate, stars.optima.position[:GROUP])
    fits, spent = local_fits(found), spent + evaluate.num_rows
    return BaseFit(best, pool.log_evidence, spent, modes=(found, fits), story=tuple(story))


def first_knowledge(evaluate: Evaluator, seed: int) -> Knowledge:
    """From the starts: optima, local fits, and draws of these.

    Where the fits cover little, or there are none, a variational fit joins them: the density may be highest far
    from its mass, or unbounded.
    """
    found = find_modes(evaluate, spread_starts(evaluate, seed))
    fits, spent = local_fits(found), 0
    modes = "1 mode" if found.num_modes == 1 else f"{found.num_modes} modes"
    story = [f"{found.num_starts} starts found {modes} ({found.share_converged:.0%} of them arrived)."]
    generator, pool = np.random.default_rng([seed, FITTING]), None
    if fits:
        fits, pool = with_draws(generator, evaluate, fits)
    if pool is None or pool.effective_share < POOR_SHARE:
        variational, spent, sentences = variational_fit(evaluate, seed)
        story = [*story, *sentences]
        found, fits = with_variational(evaluate, found, variational, seed)
        fits, pool = with_draws(generator, evaluate, fits)
    return Knowledge(found, fits, pool, spent, tuple(story))


def with_draws(
    generator: np.random.Generator, evaluate: Evaluator, fits: list[LocalFit]
) -> tuple[list[LocalFit], ImportanceSample]:
    """The fits as population Monte Carlo improves them, and draws of them."""
    mixture, pool = adapt_by_importance(generator, evaluate, mixture_of(fits, evaluate.target.initial_position))
    return refitted(fits, mixture, pool.log_evidence), pool


def variational_fit(evaluate: Evaluator, seed: int) -> tuple[LocalFit, int, tuple[str, ...]]:
    """ADVI's fit from the initial position; failing that, a guess of unit scale."""
    fit = fit_advi(evaluate.target, seed=seed, precision=evaluate.precision)
    mean, scale = ravelled(fit.base.mean), np.asarray(fit.base.scale_tril)
    if not (np.isfinite(fit.log_zeta) and np.isfinite(mean).all() and np.all(scale < WIDEST_FIT)):
        mean, scale = evaluate.initial_position, np.ones_like(mean)
    log_mass = float(np.nan_to_num(fit.log_zeta, nan=-1e300, neginf=-1e300))
    fitted = LocalFit(mean, np.diag(scale**2), log_mass, mean, np.nan, "variational fit", np.nan)
    return fitted, fit.num_gradients, fit.story


def with_variational(
    evaluate: Evaluator, found: Found, variational: LocalFit, seed: int
) -> tuple[Found, list[LocalFit]]:
    """The fits, where that of the mode to which most draws of the variational fit ascend gives way to it."""
    generator = np.random.default_rng([seed, 0xAD71])
    deviations = np.sqrt(np.diag(variational.covariance))
    starts = variational.mean + deviations * generator.normal(size=(GROUP, deviations.size))
    found = find_modes(evaluate, starts, found)
    if found.num_modes == 0:
        return found, [variational]
    home = int(np.argmax(np.bincount(found.mode, found.counts[:, 1], minlength=found.num_modes)))
    fits = [fit_of_mode(found, mode) for mode in range(found.num_modes)]
    fits[home] = fits[home]._replace(
        mean=variational.mean, covariance=variational.covariance, log_mass=variational.log_mass
    )
    return found, sorted(fits, key=lambda fit: -fit.log_mass)[:MOST_COMPONENTS]


def after_pilot(known: Knowledge, evaluate: Evaluator, fit: BaseFit, seed: int, reporter: Reporter) -> Knowledge:
    """A short run on the path from the present base, and what it adds."""
    base, like = cast(piloting(fit.base), evaluate.precision), evaluate.target.initial_position
    went = explore(seed, evaluate.target, base, fit.log_zeta, GibbsTempering(), PILOT, reporter)
    found = find_modes(evaluate, resampled(went, seed, GROUP), known.found)
    fresh = [f for f in local_fits(found) if f.found_by == "draws" and is_new(f, known.fits)]
    fits = sorted([*known.fits, *fresh], key=lambda fit: -fit.log_mass)[:MOST_COMPONENTS]
    mixture = mixture_of(fits, like)
    sample = draw_importance(np.random.default_rng([seed, FITTING]), evaluate, mixture)
    pool = pooled(sample, mixture, went, evaluate)
    mixture = em_update(mixture, pool.position, pool.log_weight)
    story = f"A pilot: log Z about {pool.log_evidence:.2f}, {len(fresh)} new modes."
    return Knowledge(
        found,
        refitted(fits, mixture, pool.log_evidence),
        pool,
        known.num_gradients + gradients_of(went),
        (*known.story, story),
        has_piloted=True,
    )


def gradients_of(went: Exploration) -> int:
    return int(went.outcome.draws.num_gradients.sum()) + went.outcome.warmup_gradients


def pooled(sample: ImportanceSample, mixture: Any, went: Exploration, evaluate: Evaluator) -> ImportanceSample:
    """Draws of the fits and of a pilot together, with deterministic-mixture weights (Owen and Zhou 2000).

    A pilot's draws have density base(x) N(r(x)), whose constant is the mean of 1/N over them; being correlated,
    they count for a tenth of their number.
    """
    draws, path, law = went.outcome.draws, went.path, went.outcome.tuning.law
    drawn, log_zeta = draws.position.reshape(-1, draws.position.shape[-1]), float(path.log_zeta)
    positions = np.concatenate([sample.position, drawn])
    log_base = log_densities(to_numpy(path.base), positions, path.target.initial_position)
    own = np.ravel(draws.log_ratio) + log_base[len(sample.position) :] + log_zeta
    log_target = np.concatenate([sample.log_target, np.where(np.isfinite(own), own, -np.inf)])
    log_mixture = mixture.log_density_of_rows(positions)
    log_weight_base = draws.log_weight_base
    assert law is not None, "pilots have a law of beta"
    log_pilot = log_base + log_masses(law, log_target - log_zeta - log_base)
    log_pilot += np.logaddexp.reduce(log_weight_base, axis=None) - np.log(log_weight_base.size)
    counts = sample.log_weight.size, 0.1 * log_weight_base.size
    shares = np.log(np.array(counts) / sum(counts))
    log_proposal = np.logaddexp(shares[0] + log_mixture, shares[1] + log_pilot)
    log_weight = log_target - log_proposal
    log_weight[: counts[0]] += shares[0] - np.log(counts[0] / len(positions))
    log_weight[counts[0] :] += shares[1] - np.log(log_weight_base.size / len(positions))
    return ImportanceSample(positions, log_weight, log_target)

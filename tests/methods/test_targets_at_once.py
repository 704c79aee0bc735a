"""What is learned of several targets at once is what is learned of each."""

from typing import Any

import jax
import numpy as np
import pytest

import thermocline as tc
from thermocline.methods.tuning import in_precision
from thermocline.movers import Metric
from thermocline.records import Draws
from thermocline.support.precision import computing_in

NUMBER, CHAINS, DRAWS, DIMENSION = 3, 4, 12, 2
METHODS: dict[str, Any] = {
    "gibbs": tc.GibbsTempering(),
    "plain law": tc.GibbsTempering(law=tc.Continuous()),
    "fixed scale": tc.GibbsTempering(tc.HMC(scale=2.0)),
    "fixed step": tc.GibbsTempering(tc.HMC(step_size=0.3)),
    "joint": tc.JointTempering(),
    "simulated": tc.SimulatedTempering(betas=tc.sigmoidal_betas(5)),
    "neighbours": tc.SimulatedTempering(betas=tc.sigmoidal_betas(5), neighbours=True),
    "untempered": tc.Untempered(),
    "extended": tc.experimental.ExtendedHamiltonian(),
    "parallel": tc.ParallelTempering(num_replicas=5),
    "annealed": tc.AnnealedImportance(num_temperatures=6),
    "given": tc.AnnealedImportance(betas=[0.0, 0.3, 1.0]),
    "transitions": tc.TemperedTransitions(num_temperatures=6),
    "sequential": tc.SequentialMonteCarlo(num_particles=8),
    "adiabatic": tc.experimental.AdiabaticMonteCarlo(),
}
FACTORS = np.array([[[1.0, 0.0], [0.4, 0.8]], [[2.0, 0.0], [-0.3, 0.5]], [[0.7, 0.0], [0.0, 1.3]]])
METRICS = {
    "diagonal": lambda centres: (FACTORS.diagonal(axis1=1, axis2=2), None),
    "dense": lambda centres: (FACTORS, None),
    "dense, with centres": lambda centres: (FACTORS, centres),
}


def metric_for(kind):
    scale, centres = METRICS[kind](np.random.default_rng(1).normal(size=(NUMBER, 4, DIMENSION)))
    return Metric(scale, scale, np.ones((NUMBER, DIMENSION)), centres)


def rounds_of(generator):
    """Draws as a round leaves them, with unused slots and one draw off the target's support."""
    shape = NUMBER, CHAINS, DRAWS
    log_ratio = generator.normal(scale=np.array([0.5, 2.0, 9.0])[:, None, None], size=shape)
    log_mass = 0.5 * log_ratio + 0.1 * generator.normal(size=shape)
    beta, acceptance = generator.uniform(size=(2, *shape))
    log_ratio[0, 1, 2], log_mass[0, 1, 2] = -np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        log_weight = np.where(np.isfinite(log_ratio), log_ratio - log_mass, -np.inf)
    draws = Draws(*(np.zeros(shape) for _ in Draws._fields))._replace(
        position=generator.normal(size=(*shape, DIMENSION)),
        inverse_temperature=beta,
        log_ratio=log_ratio,
        log_weight_target=log_weight,
        log_weight_base=-log_mass,
        acceptance=acceptance,
        stage_log_weights=generator.normal(size=(*shape, 2, 4)) - 0.3,  # between five replicas
    )
    for leaf in draws:
        leaf[:, :, -3:] = np.nan
    return draws


def of_target(tree, index):
    return jax.tree.map(lambda leaf: leaf[index], tree)


def learned(method, metric, base_log_ratio, rounds):
    """As a run learns it: the first tuning, then three rounds, of which the last leaves the metric alone."""
    first = method.pilot or method
    tuning = first.initial_tuning(metric, base_log_ratio)
    for number, draws in enumerate(rounds):
        tuning = first.adapt(tuning, draws, number == len(rounds) - 1)
    tuned = method.tuned(tuning)
    return tuned if method.pilot is None else method.adapt(tuned, rounds[0], False)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", METRICS)
@pytest.mark.parametrize("name", METHODS)
def test_several_targets_at_once_are_each_by_itself(name, kind):
    method, metric, generator = METHODS[name], metric_for(kind), np.random.default_rng(2)
    base_log_ratio = generator.normal(scale=np.array([0.3, 4.0, 40.0])[:, None], size=(NUMBER, 64))
    rounds = [rounds_of(generator) for _ in range(3)]
    together = learned(method, metric, base_log_ratio, rounds)
    for index in range(NUMBER):
        metric_of_one = of_target(metric, index)
        alone = learned(method, metric_of_one, base_log_ratio[index], [of_target(draws, index) for draws in rounds])
        assert jax.tree.structure(of_target(together, index)) == jax.tree.structure(alone)
        for one, other in zip(jax.tree.leaves(of_target(together, index)), jax.tree.leaves(alone), strict=True):
            assert np.shape(one) == np.shape(other)
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
            assert np.all(np.isfinite(one))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_target_without_draws_keeps_its_metric_and_spoils_no_other():
    method, metric, generator = METHODS["gibbs"], metric_for("dense"), np.random.default_rng(3)
    base_log_ratio = generator.normal(size=(NUMBER, 64))
    base_log_ratio[1] = -np.inf
    draws = rounds_of(generator)
    for leaf in draws:
        leaf[1] = np.nan
    tuning = learned(method, metric, base_log_ratio, [draws, draws])
    np.testing.assert_array_equal(tuning.metric.basis[1], metric.basis[1])
    for index in (0, 2):
        assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(of_target(tuning, index)))


def test_leaves_have_the_precision_of_the_run():
    target = tc.Target(lambda x: -0.5 * x @ x, np.zeros(2))
    options: dict[str, Any] = {"num_chains": 4, "num_warmup": 40, "num_draws": 8, "progress": False, "search": False}
    for method in (tc.GibbsTempering(), tc.ParallelTempering(num_replicas=4)):
        base = tc.Gaussian.diagonal(np.zeros(2), 2.0)
        result = tc.sample(target, base=base, method=method, precision="float32", **options)
        floats = [leaf for leaf in jax.tree.leaves(result.continuation.tuning) if leaf.dtype.kind == "f"]
        assert {leaf.dtype for leaf in floats} == {np.dtype("float32")}
    with computing_in("float32"):
        tuning = in_precision(tc.GibbsTempering().initial_tuning(of_target(metric_for("dense"), 0), np.zeros(8)), "f4")
    assert tuning.learning.window.is_open.dtype == bool

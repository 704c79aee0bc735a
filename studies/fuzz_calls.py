"""Calls with something wrong in them, for Hypothesis: what a user might pass by mistake, one or two at a time."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

import thermocline as tc
from studies.fuzz_parts import (
    BASE,
    INF,
    JUNK,
    NAN,
    SHORT,
    START,
    TARGET,
    WORDS,
    Call,
    log_density,
    raising,
    sample,
    shown,
)

OPTIONS = (
    *("seed", "num_chains", "num_warmup", "num_draws", "target_error", "max_evaluations", "max_seconds", "chunk_size"),
    *("precision", "checkpoint", "method", "base", "search", "progress"),
)


@st.composite
def options(draw: Any) -> Call:
    """`sample` with one option or two of the wrong kind."""
    names = tuple(draw(st.lists(st.sampled_from(OPTIONS), min_size=1, max_size=2, unique=True)))
    values = {name: draw(st.sampled_from(JUNK)) for name in names}
    if isinstance(values.get("checkpoint"), str):
        values["checkpoint"] = "/proc/none/" + values["checkpoint"]
    for name in ("num_chains", "num_warmup", "num_draws"):  # sizes that are no mistake are not asked for
        if isinstance(values.get(name), int) and values[name] > 100:
            values[name] = -values[name]
    words = [word for name in names for word in WORDS.get(name, (name,))]
    what = ", ".join(f"{name}={shown(value)}" for name, value in values.items())
    return Call(f"sample({what})", tuple(words), lambda: sample(**values))


DENSITIES: dict[str, Any] = {
    **{f"returns {shown(value)}": (lambda *given, value=value: value) for value in JUNK},
    **{f"raises {error.__name__}": raising(error) for error in (ValueError, TypeError, KeyError, RuntimeError)},
    **{f"raises {error.__name__}": raising(error) for error in (ZeroDivisionError, AttributeError, AssertionError)},
    **{f"raises {error.__name__}": raising(error) for error in (StopIteration, MemoryError, NotImplementedError)},
    "returns a vector": lambda p: -0.5 * p["x"] ** 2,
    "returns a matrix": lambda p: jnp.outer(p["x"], p["x"]),
    "returns an integer": lambda p: jnp.sum(p["x"]).astype(int),
    "returns a truth": lambda p: p["scale"] > 0,
    "returns a complex number": lambda p: log_density(p) + 1j,
    "returns one number in a vector": lambda p: log_density(p)[None],
    "returns a tuple": lambda p: (log_density(p), 1.0),
    "returns NaN": lambda p: log_density(p) * jnp.nan,
    "returns inf": lambda p: log_density(p) + jnp.inf,
    "has a branch": lambda p: log_density(p) if p["scale"] > 0 else 0.0,
    "is NumPy's": lambda p: float(np.sum(np.asarray(p["x"]) ** 2)),
    "prints": lambda p: print(float(p["scale"])),
    "misses a name": lambda p: p["y"],
    "takes two": lambda p, q: log_density(p),
    "takes none": lambda: 0.0,
    "has a NaN slope": lambda p: log_density(p) + jnp.sqrt(jnp.abs(p["scale"] - 0.25)),
    **{f"is {shown(value)}": value for value in JUNK if not callable(value)},
}
POSITIONS: dict[str, Any] = {
    **{f"start {shown(value)}": value for value in JUNK},
    **{f"scale of {shown(value)}": {**START, "scale": value} for value in JUNK},
    "a nested start": {"a": {"b": [np.zeros(2), (1.0, {"c": np.zeros((2, 2))})]}},
    "a deep start": {"a": {"a": {"a": {"a": {"a": {"a": {"a": 0.5}}}}}}},
    "names that collide": {"a.b": 0.0, "a": {"b": 0.0}},
    "names that are no words": {1: 0.0, 2: 1.0},
    "names of two kinds": {1: 0.0, "b": 1.0},
    "an empty parameter": {**START, "y": np.zeros((0, 3))},
    "a large start": {**START, "x": np.array([1e300, -1e300])},
    "many parameters": np.zeros(3000),
}


@st.composite
def densities(draw: Any) -> Call:
    """A density that gives no number, or cannot be called."""
    what = draw(st.sampled_from(sorted(DENSITIES)))
    data = draw(st.sampled_from([None, None, 2.0, {"y": np.ones(2)}]))
    names = ("log_density", "log density", "target")
    return Call(f"a density that {what}", names, lambda: sample(tc.Target(DENSITIES[what], START, data)))


@st.composite
def positions(draw: Any) -> Call:
    """A start of any kind, with a density that can take it if any can."""
    what = draw(st.sampled_from(sorted(POSITIONS)))

    def density(position: Any) -> Any:
        import jax

        return -0.5 * sum(jnp.sum(jnp.square(leaf)) for leaf in jax.tree.leaves(position))

    function = draw(st.sampled_from([log_density, density]))
    names = (*WORDS["initial_position"], "base", "log density")
    return Call(what, names, lambda: sample(tc.Target(function, POSITIONS[what])))


@st.composite
def targets(draw: Any) -> Call:
    """Other arguments of `Target`."""
    name = draw(st.sampled_from(["data", "constrain", "prior", "known_modes", "caveats", "observed", "labels"]))
    value = draw(st.sampled_from(JUNK))
    density = (lambda p, data: log_density(p)) if name == "data" and value is not None else log_density
    names = (name, "target", *WORDS.get(name, ()))
    is_searched = name in ("prior", "known_modes")
    given: dict[str, Any] = {name: value}
    keep = {"num_draws": 4} | ({"base": tc.fit_laplace} if is_searched else {})
    return Call(
        f"Target({name}={shown(value)})", names, lambda: sample(tc.Target(density, START, **given), **keep)
    )


METHODS: dict[str, Callable[[Any], Any]] = {
    "mover": lambda v: tc.GibbsTempering(v),
    "law": lambda v: tc.GibbsTempering(law=v),
    "step_size": lambda v: tc.GibbsTempering(tc.HMC(step_size=v)),
    "num_steps": lambda v: tc.GibbsTempering(tc.HMC(num_steps=v)),
    "jitter": lambda v: tc.GibbsTempering(tc.HMC(jitter=v)),
    "target_acceptance": lambda v: tc.GibbsTempering(tc.HMC(target_acceptance=v)),
    "scale": lambda v: tc.GibbsTempering(tc.HMC(scale=v)),
    "max_doublings": lambda v: tc.GibbsTempering(tc.NUTS(max_doublings=v)),
    "bias": lambda v: tc.GibbsTempering(law=tc.Continuous(v, np.linspace(0, 1, 3))),
    "knots": lambda v: tc.GibbsTempering(law=tc.Continuous(np.zeros(3), v)),
    "betas": lambda v: tc.GibbsTempering(law=tc.Ladder(v, np.zeros(2))),
    "log_weights": lambda v: tc.GibbsTempering(law=tc.Ladder(np.array([0.0, 1.0]), v)),
    "simulated betas": lambda v: tc.SimulatedTempering(betas=v),
    "annealed betas": lambda v: tc.AnnealedImportance(betas=v),
    "num_temperatures": lambda v: tc.AnnealedImportance(num_temperatures=v),
    "num_replicas": lambda v: tc.ParallelTempering(num_replicas=v),
    "control": lambda v: tc.JointTempering(v),
}


@st.composite
def methods(draw: Any) -> Call:
    """Options of a method."""
    name = draw(st.sampled_from(sorted(METHODS)))
    value = draw(st.sampled_from([v for v in JUNK if not (isinstance(v, int) and v > 100)]))
    names = (name.split()[-1], "method", "law", "mover", "temperatures", "betas")
    return Call(f"a method with {name} {shown(value)}", names, lambda: sample(method=METHODS[name](value)))


SCALES: list[Any] = [*JUNK, -np.ones(3), np.zeros(3), np.full(3, NAN), np.full(3, INF), np.eye(3) * 0, np.eye(3) - 2]
BASES: dict[str, Callable[[Any], Any]] = {
    "scale": lambda v: tc.Gaussian(BASE.mean, v),
    "mean": lambda v: tc.Gaussian(v, np.ones(3)),
    "mean of scale": lambda v: tc.Gaussian({"x": np.zeros(2), "scale": v}, np.ones(3)),
    "standard deviation": lambda v: tc.Gaussian.diagonal(BASE.mean, v),
    "degrees_of_freedom": lambda v: tc.StudentT(BASE.mean, np.ones(3), v),
    "log_zeta": lambda v: tc.BaseFit(BASE, v),
    "base of a fit": lambda v: tc.BaseFit(v, 0.0),
    "sample": lambda v: tc.Base(BASE.log_density, v),
    "draws": lambda v: tc.Base(BASE.log_density, lambda key: v),
    "log_density": lambda v: tc.Base(v, BASE.sample),
    "log density": lambda v: tc.Base(lambda p: v, BASE.sample),
    "function's base": lambda v: lambda target, seed: v,
    "function": lambda v: raising(KeyError),
    "components": lambda v: tc.Mixture(v, np.zeros(2)),
}


@st.composite
def bases(draw: Any) -> Call:
    """Parts of a base."""
    name = draw(st.sampled_from(sorted(BASES)))
    value = draw(st.sampled_from(SCALES))
    words = ("base", "log_zeta", "mean", "scale", "degrees", *name.split())
    return Call(f"a base with {name} {shown(value)}", words, lambda: sample(base=BASES[name](value)))


def family(position: Any, data: Any) -> Any:
    """Densities that go wrong somewhere, by numbers: one program for all."""
    x = position["x"]
    value = data["height"] - 0.5 * jnp.sum(((x - data["centre"]) / data["width"]) ** 2) * data["curved"]
    value = value + data["slope"] * x[0]
    return jnp.where(x[0] > data["edge"], data["beyond"], value) - 0.5 * position["scale"] ** 2


EXTREME = [0.0, 1.0, -1.0, 1e-300, 1e300, -1e300, 1e308, -1e308, 1e16, -1e16, 1e100, 700.0, -700.0, 3.0]


@st.composite
def numbers(draw: Any) -> Call:
    """NaN or infinities beyond an edge, heights near the largest number, spikes, slopes, and no fall at all."""
    data = {
        "height": draw(st.sampled_from(EXTREME)),
        "centre": draw(st.sampled_from([0.0, 0.0, 1.0, 30.0, 1e6, 1e300])),
        "width": draw(st.sampled_from([1.0, 1.0, 0.5, 1e-6, 1e-160, 1e6, 1e160, 1e300])),
        "curved": draw(st.sampled_from([1.0, 1.0, 0.0, -1.0, 1e-3])),
        "slope": draw(st.sampled_from([0.0, 0.0, 1.0, 1e6, 1e300])),
        "edge": draw(st.sampled_from([1e9, 1e9, 3.0, 0.6, 0.5, 8.0])),
        "beyond": draw(st.sampled_from([NAN, INF, -INF, 1e300, -1e300, 0.0])),
    }
    is_gaussian = data["curved"] == 1 and data["slope"] == 0 and data["edge"] > 1e8 and abs(data["height"]) < 1e4
    is_gaussian = is_gaussian and data["centre"] in (0.0, 1.0) and data["width"] in (1.0, 0.5)
    truth = data["height"] + 0.5 * np.log(2 * np.pi) + np.log(2 * np.pi * data["width"] ** 2) if is_gaussian else None
    names = ("log density", "gradient", "base")
    target = tc.Target(family, {"x": np.array([0.5, -1.0]), "scale": 0.25}, data)
    return Call(f"a density of {data}", names, partial(sample, target, num_warmup=20, num_draws=40), truth)


@st.composite
def many(draw: Any) -> Call:
    """`sample_many` with wrong data, sizes or bases."""
    name = draw(st.sampled_from(["data", "group_size", "base", "seed", "positions", "num_draws", "target", "method"]))
    value = draw(st.sampled_from([v for v in JUNK if not (isinstance(v, int) and v > 100)]))
    given: dict[str, Any] = {"target": TWO, "data": np.zeros((2, 2)), **SHORT, "group_size": 2, "progress": False}
    given |= {name: value}
    words = WORDS.get(name, (name,))
    return Call(f"sample_many({name}={shown(value)})", words, lambda: tc.sample_many(given.pop("target"), **given))


TWO = tc.Target(lambda p, d: log_density(p) - jnp.sum(d), START)


@st.composite
def hosts(draw: Any) -> Call:
    """`from_numpy` of functions that return no value and gradient."""
    value, gradient = draw(st.sampled_from(JUNK)), draw(st.sampled_from([*JUNK, np.zeros(2)]))
    whole = draw(st.sampled_from([value, (value, gradient), (0.5, gradient), [0.5, gradient], (value, np.zeros(2))]))
    base = tc.Gaussian.diagonal(np.zeros(2), 1.0)
    names = ("value", "gradient", "log density", "function", "base")
    return Call(
        f"from_numpy of {shown(whole)}", names, lambda: sample(tc.from_numpy(lambda x: whole, np.zeros(2)), base=base)
    )


@cache
def result() -> Any:
    return sample(num_draws=200, num_warmup=50)


QUESTIONS: dict[str, tuple[tuple[str, ...], Callable[[Any], Any]]] = {
    "expectation": (("function", "expectation"), lambda v: result().expectation(v)),
    "expectation of": (("function", "expectation"), lambda v: result().expectation(lambda p: v)),
    "quantile": (("probability",), lambda v: result().quantile(lambda p: p["scale"], v)),
    "interval": (("probability",), lambda v: result().interval(lambda p: p["scale"], v)),
    "posterior": (("num_draws",), lambda v: result().posterior(v)),
    "seed of posterior": (("seed",), lambda v: result().posterior(10, seed=v)),
    "log_partition": (("beta", "temperatures"), lambda v: result().log_partition(v)),
    "bounds": (("beta", "temperatures"), lambda v: result().log_partition_bounds(v)),
    "beta_marginal": (("beta", "temperatures"), lambda v: result().beta_marginal(v)),
    "load": (("",), lambda v: tc.load(v)),
    "save": (("",), lambda v: result().save(f"/proc/none/{v}" if isinstance(v, str | bytes) else v)),
    "compare": (("compare", "results"), lambda v: tc.compare(v)),
    "compare with": (("compare", "results", "b "), lambda v: tc.compare({"a": result(), "b": v})),
    "prior of compare": (("prior",), lambda v: tc.compare({"a": result(), "b": result()}, prior=v, despite="verdict")),
    "extend": (("result",), lambda v: tc.extend(v, TARGET, progress=False)),
    "target of extend": (("target",), lambda v: tc.extend(result(), v, num_draws=4, progress=False)),
    "num_draws of extend": (("num_draws",), lambda v: tc.extend(result(), TARGET, num_draws=v, progress=False)),
    "fit_moments": (("draws", "Result", "give"), lambda v: tc.fit_moments(v)),
    "fit_laplace": (("target",), lambda v: tc.fit_laplace(v)),
    "fit_advi": (("target",), lambda v: tc.fit_advi(v)),
    "seed of fit_advi": (("seed",), lambda v: tc.fit_advi(TARGET, seed=v)),
    "fit_pathfinder": (("target",), lambda v: tc.fit_pathfinder(v)),
    "fit_auto": (("target",), lambda v: tc.fit_auto(v, progress=False)),
    "cross_check": (("result", "target"), lambda v: tc.cross_check(v, TARGET)),
    "bidirectional": (("target",), lambda v: tc.bidirectional(v, result(), progress=False)),
}


@st.composite
def questions(draw: Any) -> Call:
    """Other functions, and questions to a Result."""
    name = draw(st.sampled_from(sorted(QUESTIONS)))
    value = draw(st.sampled_from([v for v in JUNK if not (isinstance(v, int) and v > 100) and v is not TARGET]))
    names, ask = QUESTIONS[name]
    return Call(f"{name}: {shown(value)}", names, lambda: ask(value))


def calls() -> SearchStrategy[Call]:
    """Of every kind."""
    cheap = options(), options(), positions(), methods(), bases(), questions()
    return st.one_of(*cheap, densities(), targets(), numbers(), many(), hosts())

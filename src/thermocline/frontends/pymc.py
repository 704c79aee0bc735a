"""PyMC models as targets, through PyTensor's JAX backend."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial

from thermocline.bases import Base
from thermocline.frontends.common import (
    data_among,
    first_position,
    in_a_sentence,
    not_a_number,
    unnormalised,
)
from thermocline.frontends.host import call_host
from thermocline.frontends.pymc_graphs import Graphs, can_be_drawn, give_erfcx, lost_by_areas, translated, value_of
from thermocline.support.errors import ThermoclineError
from thermocline.support.optional import require
from thermocline.support.precision import computing_in
from thermocline.target import Labels, Target


def from_pymc(model: Any) -> Target:
    """The target of a PyMC model, on the unconstrained values that PyMC itself samples.

    Observed values, `pm.Data` and arrays of floats in the model are the data; deterministics
    come back beside parameters.
    """
    with _settings_kept():
        pymc = require("pymc", "pymc", "pymc.sampling.jax")
    if not isinstance(model, pymc.Model):
        raise ThermoclineError(f"model is of type {type(model).__name__}; give the pm.Model itself.")
    _check(model)
    give_erfcx()
    with computing_in("float64"), in_a_sentence({var.name: var.get_value() for var in model.data_vars}):
        point = model.initial_point(random_seed=0)
        guess = {var.name: np.asarray(point[var.name], float) for var in model.value_vars}
        caveats, (graphs, log_density) = _caveats(model, guess), translated(model, guess)
        arrays = {name: jnp.asarray(value) for name, value in graphs.values.items()}
        chosen = data_among(arrays, lambda data: log_density(guess, data))
        data = {name: graphs.values[name] for name in chosen}
        hidden = {model.rvs_to_values[rv] for rv in model.free_RVs if model.rvs_to_transforms[rv] is not None}
        shown = [var for var in model.unobserved_value_vars if var not in hidden]  # constrained instead
        observed = [rv.name for rv in model.observed_RVs]
        is_improper = any("improper" in caveat for caveat in caveats)
        return Target(
            log_density,
            first_position(log_density, guess, data),
            data,
            graphs.function(shown),
            None if is_improper or not can_be_drawn(model) else _prior(model, graphs, guess, data),
            caveats,
            _labels(model, shown),
            graphs.observed(data),
            graphs.function(model.logp(model.observed_RVs, sum=False), observed) if observed else None,
            name=model.name,
            factors=_factors(model, graphs) if observed or model.potentials else None,
        )


class _Compiled:
    """PyTensor's function of some graphs without inputs, compiled when first called; where it travels, they do."""

    def __init__(self, outputs: list[Any]) -> None:
        self.outputs, self.function = outputs, None

    def __call__(self) -> list[np.ndarray]:
        from pytensor.compile.function import function

        if self.function is None:
            self.function = function([], self.outputs, mode="FAST_COMPILE")
        return self.function()

    def __reduce__(self) -> Any:
        return _Compiled, (self.outputs,)


def _factors(model: Any, graphs: Graphs) -> Any:
    """Log likelihoods by observed variable and row, and potentials."""
    parts = [*model.observed_RVs, *model.potentials]
    return graphs.function(model.logp(parts, sum=False), [part.name for part in parts])


def _prior(model: Any, graphs: Graphs, guess: dict[str, np.ndarray], data: Any) -> Base:
    """The prior as a base; drawn on the host by PyMC itself."""
    from pymc.pytensorf import find_rng_nodes, replace_rng_nodes, reseed_rngs

    transforms = model.rvs_to_transforms
    outputs = [
        rv if transforms[rv] is None else transforms[rv].forward(rv, *rv.owner.inputs) for rv in model.free_RVs
    ]
    names = [model.rvs_to_values[rv].name for rv in model.free_RVs]
    outputs = replace_rng_nodes(outputs)
    generators = find_rng_nodes(outputs)
    compiled = _Compiled(outputs)

    def draw(rows: np.ndarray) -> np.ndarray:
        draws = []
        for row in rows.astype(np.uint32):
            reseed_rngs(generators, row.tolist())
            values = dict(zip(names, compiled(), strict=True))
            draws.append(np.concatenate([np.ravel(values[name]) for name in sorted(values)]))
        return np.stack(draws)

    flat, unravel = ravel_pytree({name: jnp.asarray(value) for name, value in guess.items()})

    def sample(key: jax.Array) -> Any:
        words = jax.random.bits(key, (4,), jnp.uint16).astype(flat.dtype)  # exact in any precision
        return unravel(call_host(draw, words, flat.size))

    return Base(Partial(graphs.log_density(model.free_RVs), data=data), sample)


def _check(model: Any) -> None:
    """Raise with the reason when the model has no density on real parameters."""
    if not model.free_RVs:
        raise ThermoclineError(
            "the model has no parameters: every variable is observed. Its evidence is its likelihood."
        )
    unobserved = {rv.name.removesuffix("_unobserved") for rv in model.free_RVs if rv.name.endswith("_unobserved")}
    for name in unobserved & {rv.name.removesuffix("_observed") for rv in model.observed_RVs}:
        raise ThermoclineError(
            f"the observed variable {name} has missing values, which PyMC would sample too; leave these "
            "observations out, or write them as parameters of the model."
        )
    discrete = [var.name for var in model.discrete_value_vars]
    if discrete:
        raise ThermoclineError(
            f"{', '.join(discrete)} {'is' if len(discrete) == 1 else 'are'} discrete; gradients need real parameters. "
            "Sum it out, e.g. with pm.Mixture or pmx.marginalize."
        )
    for rv in model.observed_RVs:
        if type(rv.owner.op).__name__ == "MinibatchRandomVariable":
            raise ThermoclineError(f"{rv.name} sees a random minibatch: the evidence needs all the data.")
    values = {rv.name: model.rvs_to_values[rv] for rv in model.observed_RVs}
    not_a_number({name: value_of(value) for name, value in values.items()}, "the observed variable")


def _caveats(model: Any, guess: dict[str, np.ndarray]) -> tuple[str, ...]:
    """Why log Z may not be the model's evidence."""
    from pymc.distributions.transforms import _default_transform

    sentences = []
    for rv in model.free_RVs:
        if type(rv.owner.op).__name__ in ("FlatRV", "HalfFlatRV"):
            kind = type(rv.owner.op).__name__.removesuffix("RV")
            sentences.append(f"The prior of {rv.name} is improper (pm.{kind}): the model has no evidence.")
            continue
        if type(rv.owner.op).__name__ == "ICARRV" or lost_by_areas(rv) is None:
            sentences.append(f"PyMC's prior of {rv.name} (areas) is not normalised: log Z lacks its constant.")
        transform, usual = model.rvs_to_transforms[rv], _default_transform(rv.owner.op, rv)
        if transform is not None and type(transform) is not type(usual):
            size = guess[model.rvs_to_values[rv].name].shape[-1:]
            lost = f" (log {size[0]}! for exchangeable values)" if "Ordered" in _kind(transform) else ""
            sentences.append(
                f"{rv.name} has a transform of its own ({_kind(transform)}), which may cut its prior without "
                f"normalising it: log Z then lacks a constant{lost}."
            )
    return (*sentences, *(unnormalised(f"pm.Potential {potential.name}") for potential in model.potentials))


def _kind(transform: Any) -> str:
    parts = getattr(transform, "transform_list", None)
    return type(transform).__name__ if parts is None else ", ".join(type(part).__name__ for part in parts)


def _labels(model: Any, shown: list[Any]) -> Labels:
    names = {var.name for var in shown} | {rv.name for rv in model.observed_RVs}
    dims = {
        name: tuple(dim or f"{name}_dim_{i}" for i, dim in enumerate(dims))
        for name, dims in model.named_vars_to_dims.items()
        if name in names
    }
    used = {dim for own in dims.values() for dim in own}
    return Labels(dims, {dim: tuple(values) for dim, values in model.coords.items() if values and dim in used})


@contextmanager
def _settings_kept() -> Iterator[None]:
    """Undo what importing PyMC's JAX modules does to JAX's precision and to XLA's flags.

    The precision is read in a thread of its own, which sees JAX's global setting and no `with jax.enable_x64(...)`.
    """
    with ThreadPoolExecutor(1) as pool:
        precision = pool.submit(lambda: jax.config.values["jax_enable_x64"]).result()
    flags = os.environ.get("XLA_FLAGS")
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", precision)
        os.environ.pop("XLA_FLAGS", None)
        if flags is not None:
            os.environ["XLA_FLAGS"] = flags

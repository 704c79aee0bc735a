"""NumPyro models as targets."""

import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial

from thermocline.bases import Base
from thermocline.frontends.common import (
    check_data,
    data_among,
    first_position,
    in_a_sentence,
    not_a_number,
    off_support,
    unnormalised,
)
from thermocline.support.errors import ThermoclineError, brief
from thermocline.support.optional import require
from thermocline.support.precision import cast, computing_in
from thermocline.target import Labels, Target, named_leaves


def from_numpyro(model: Callable[..., Any], *args: Any, **kwargs: Any) -> Target:
    """The target of a NumPyro model called with these arguments; arrays among them are its data.

    The density is of the unconstrained latent sites, the Jacobian of their transforms in it, and every constant.
    """
    numpyro = require("numpyro", "numpyro", "numpyro.infer.util")
    if not callable(model):
        raise ThermoclineError(f"model is {brief(model)}; give a function that calls numpyro.sample.")
    bound = _bound(model, args, kwargs)
    with computing_in("float64"), in_a_sentence(named_leaves(dict(bound.arguments))):
        call = Call(numpyro, model, bound)
        _check(call)
        arrays = {name: leaf for name, leaf in call.leaves.items() if _is_array(leaf)}
        guess = call.unconstrained(call.sites)
        data = data_among(arrays, lambda data: call.log_density(guess, data))
        caveats = _caveats(call)
        is_improper = any("improper" in caveat or "masked" in caveat for caveat in caveats)
        has_prior = not is_improper and call.can_draw(call.draw_prior, data)
        return Target(
            call.log_density,
            first_position(call.log_density, guess, data),
            data,
            call.constrain,
            Base(Partial(call.log_prior, data=data), Partial(call.draw_prior, data=data)) if has_prior else None,
            caveats,
            _labels(call.sites),
            _observed(call, data),
            call.log_likelihood if call.likelihoods else None,
            name=getattr(model, "__name__", ""),
            predict=call.predict if call.likelihoods and call.can_draw(call.predict, guess, data) else None,
            factors=call.log_factors if call.observed and has_prior else None,
        )


class Call:
    """A model and its arguments by name, as functions of (position, data); data stand for some of the arguments."""

    model: Callable[..., Any]
    handlers: Any
    util: Any
    bound: inspect.BoundArguments
    leaves: dict[str, Any]
    sites: Any
    latents: list[str]
    observed: list[str]
    factors: list[str]
    likelihoods: list[str]
    without_data: Callable[..., Any]

    def __init__(self, numpyro: Any, model: Callable[..., Any], bound: inspect.BoundArguments) -> None:
        self.model, self.handlers, self.util, self.bound = model, numpyro.handlers, numpyro.infer.util, bound
        self.structure = jax.tree.structure(dict(self.bound.arguments))
        leaves = named_leaves(dict(self.bound.arguments))
        self.leaves = {name: cast(leaf, "float64") if _is_array(leaf) else leaf for name, leaf in leaves.items()}
        seeded = self.handlers.seed(model, jax.random.PRNGKey(0))
        self.sites = self.trace(self.handlers.substitute(seeded, substitute_fn=_at_zero), {})
        samples = {name: site for name, site in self.sites.items() if site["type"] == "sample"}
        self.latents = [name for name, site in samples.items() if not site["is_observed"]]
        self.observed = [name for name in samples if name not in self.latents]
        self.factors = [name for name in self.observed if "Unit" in _kinds(samples[name])]
        self.likelihoods = [name for name in self.observed if name not in self.factors]
        self.without_data = self.handlers.block(model, hide_fn=lambda site: site["name"] in self.observed)

    def arguments(self, data: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        check_data(data, self.leaves)
        leaves = [data.get(name, leaf) for name, leaf in self.leaves.items()]
        bound = inspect.BoundArguments(self.bound.signature, jax.tree.unflatten(self.structure, leaves))
        return bound.args, bound.kwargs

    def trace(self, model: Any, data: dict[str, Any]) -> Any:
        """Every site of the model, or of one made from it."""
        args, kwargs = self.arguments(data)
        return self.handlers.trace(model).get_trace(*args, **kwargs)

    def log_density(self, position: Any, data: Any) -> jax.Array:
        return self._log_density_of(self.model, position, data)

    def log_prior(self, position: Any, data: Any) -> jax.Array:
        return self._log_density_of(self.without_data, position, data)

    def _log_density_of(self, model: Any, position: Any, data: Any) -> jax.Array:
        return off_support(-jnp.asarray(self.util.potential_energy(model, *self.arguments(data), position)))

    def constrain(self, position: Any, data: Any) -> dict[str, Any]:
        return self.util.constrain_fn(self.model, *self.arguments(data), position, return_deterministic=True)

    def log_likelihood(self, position: Any, data: Any) -> dict[str, Any]:
        sites = self.sites_at(position, data)
        return {name: sites[name]["fn"].log_prob(sites[name]["value"]) for name in self.likelihoods}

    def log_factors(self, position: Any, data: Any) -> dict[str, Any]:
        """By site and row, all that multiplies the prior: likelihoods and factors, to the power of their scales."""
        sites = self.sites_at(position, data)
        logs = {name: sites[name]["fn"].log_prob(sites[name]["value"]) for name in self.observed}
        return {name: log if (scale := sites[name]["scale"]) is None else scale * log for name, log in logs.items()}

    def predict(self, key: jax.Array, position: Any, data: Any) -> dict[str, tuple[Any, Any]]:
        sites, keys = self.sites_at(position, data), jax.random.split(key, len(self.likelihoods))
        drawn = zip(self.likelihoods, keys, strict=True)
        return {name: (sites[name]["value"], sites[name]["fn"].sample(own)) for name, own in drawn}

    def can_draw(self, draw: Callable[..., Any], *arguments: Any) -> bool:
        """Whether all that it draws from can be: a user's own distribution may not say how."""
        try:
            jax.eval_shape(draw, jax.random.PRNGKey(0), *arguments)
        except Exception:  # noqa: BLE001 - it says so in many ways, and there is then nothing to be drawn
            return False
        return True

    def sites_at(self, position: Any, data: Any) -> Any:
        """Every site of the model with its parameters at a position."""
        values = self.util.constrain_fn(self.model, *self.arguments(data), position)
        return self.trace(self.handlers.substitute(self.model, data=values), data)

    def draw_prior(self, key: jax.Array, data: Any) -> dict[str, Any]:
        return self.unconstrained(self.trace(self.handlers.seed(self.without_data, key), data))

    def unconstrained(self, sites: Any) -> dict[str, Any]:
        from numpyro.distributions import biject_to

        latents = {name: sites[name] for name in self.latents}
        return {name: jnp.asarray(biject_to(site["fn"].support).inv(site["value"])) for name, site in latents.items()}


def _bound(model: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> inspect.BoundArguments:
    try:
        return inspect.signature(model).bind(*args, **kwargs)
    except TypeError as error:
        raise ThermoclineError(
            f"the model cannot be called with these arguments: {error}; "
            "pass them to from_numpyro after the model, as you would to it."
        ) from None


def _at_zero(site: dict[str, Any]) -> Any:
    """A latent at zero of its unconstrained coordinates, if its support has any; NumPyro raises where it has not."""
    from numpyro.infer import init_to_uniform

    try:
        return init_to_uniform(site, radius=0)
    except NotImplementedError as error:
        raise ThermoclineError(
            f"the site {site['name']!r} cannot be mapped to unconstrained coordinates: {error}; "
            "give it a distribution whose support NumPyro's `biject_to` knows."
        ) from error


def _check(call: Call) -> None:
    """Raise with the reason when the model has no density on real parameters."""
    for name, site in call.sites.items():
        if site["type"] in ("param", "mutable"):
            raise ThermoclineError(
                f"site {name} is a numpyro.{site['type']}, which has no prior; "
                "write numpyro.sample with a distribution, or a number."
            )
        if site["type"] == "plate" and site["args"][1] is not None and site["args"][1] < site["args"][0]:
            raise ThermoclineError(
                f"plate {name} takes a random subsample of {site['args'][1]} of {site['args'][0]}: "
                "the evidence needs all the data. Leave subsample_size out."
            )
    if not call.latents:
        raise ThermoclineError(
            "the model has no parameters: no numpyro.sample without `obs`. Its evidence is its likelihood."
        )
    for name in call.latents:
        if call.sites[name]["fn"].support.is_discrete:
            raise ThermoclineError(
                f"site {name} is discrete ({_kinds(call.sites[name])[-1]}); gradients need real parameters. "
                "Sum it out, e.g. with dist.MixtureSameFamily."
            )
    not_a_number({name: call.sites[name]["value"] for name in call.observed}, "the observed site")


def _caveats(call: Call) -> tuple[str, ...]:
    """Why log Z may not be the model's evidence."""
    sentences = []
    for name, site in call.sites.items():
        if name in call.factors:
            sentences.append(unnormalised(f"numpyro.factor {name}"))
        if name in call.latents and "ImproperUniform" in _kinds(site):
            sentences.append(f"The prior of {name} is improper (ImproperUniform): the model has no evidence.")
        if name in call.latents and "MaskedDistribution" in _kinds(site):
            sentences.append(f"The prior of {name} is masked, so it is not normalised: log Z is not the evidence.")
        if site["type"] == "sample" and site["scale"] is not None and np.any(np.asarray(site["scale"]) != 1):
            sentences.append(f"Site {name} is raised to a power (handlers.scale): log Z is not the evidence.")
    return tuple(sentences)


def _observed(call: Call, data: dict[str, Any]) -> tuple[str, ...]:
    """The data that are observed as they are, if that is all that is observed."""
    values = [np.asarray(call.sites[name]["value"]) for name in call.likelihoods]
    found = [[name for name, leaf in data.items() if np.array_equal(leaf, value)] for value in values]
    return tuple(names[0] for names in found) if all(found) else ()


def _labels(sites: Any) -> Labels:
    """Plates are dims; `infer={"event_dims": [...]}` names the axes of an event."""
    dims, coords = {}, {}
    for name, site in sites.items():
        if site["type"] not in ("sample", "deterministic"):
            continue
        shape = np.shape(site["value"])
        event = list(site.get("infer", {}).get("event_dims", ()))
        rank = len(site["fn"].event_shape) if site["type"] == "sample" else len(event)
        axes: list[str | None] = [None] * len(shape)
        axes[len(shape) - len(event) :] = event
        for frame in site.get("cond_indep_stack", ()):
            place = len(shape) - rank + frame.dim
            if 0 <= place < len(shape) and shape[place] == frame.size:
                axes[place] = frame.name
                coords[frame.name] = tuple(range(frame.size))
        dims[name] = tuple(axis or f"{name}_dim_{i}" for i, axis in enumerate(axes))
    return Labels(dims, coords)


def _kinds(site: Any) -> list[str]:
    """Names of a distribution's classes, from the outermost wrapper in."""
    kinds, inner = [], site["fn"]
    while inner is not None:
        kinds.append(type(inner).__name__)
        inner = getattr(inner, "base_dist", None)
    return kinds


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, np.ndarray | jax.Array) and leaf.dtype.kind in "fiub"

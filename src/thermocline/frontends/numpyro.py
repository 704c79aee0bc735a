"""NumPyro models as targets."""

import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial

from thermocline.bases import Base
from thermocline.frontends.common import first_position, needs, not_a_number, those_that_trace
from thermocline.support.errors import ThermoclineError
from thermocline.support.precision import cast, computing_in
from thermocline.target import Labels, Target, named_leaves


def from_numpyro(model: Callable[..., Any], *args: Any, **kwargs: Any) -> Target:
    """The target of a NumPyro model called with these arguments; arrays among them are its data.

    The density is of the unconstrained latent sites, the Jacobian of their transforms in it, and every constant.
    """
    needs("numpyro", "numpyro")
    if not callable(model):
        raise ThermoclineError(f"model is {model!r}; give a function that calls numpyro.sample.")
    with computing_in("float64"):
        call = Call(model, args, kwargs)
        sites = call.first_trace()
        latents = [name for name, site in sites.items() if _is_latent(site)]
        observed = [name for name, site in sites.items() if site["type"] == "sample" and name not in latents]
        _check(sites, latents, observed)
        guess = {name: _unconstrained(sites[name]) for name in latents}
        call.choose_data(lambda data: _log_density(call, guess, data))
        caveats = _caveats(sites)
        functions = _functions(call, latents, observed)
        prior = None
        if not any("improper" in caveat or "masked" in caveat for caveat in caveats):
            prior = Base(*(Partial(function, data=call.data) for function in functions["prior"]))
        return Target(
            functions["log_density"],
            first_position(functions["log_density"], guess, call.data),
            call.data,
            functions["constrain"],
            prior,
            caveats,
            _labels(sites),
            _observed(sites, observed, call.data),
            functions["log_likelihood"] if any(not _is_factor(sites[name]) for name in observed) else None,
        )


class Call:
    """A model and its arguments, some of which are data: arrays that decide no shape and no branch of it."""

    def __init__(self, model: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.model = model
        try:
            self.bound = inspect.signature(model).bind(*args, **kwargs)
        except TypeError as error:
            raise ThermoclineError(
                f"the model cannot be called with these arguments: {error}; "
                "pass them to from_numpyro after the model, as you would to it."
            ) from error
        self.leaves, self.structure = jax.tree.flatten(dict(self.bound.arguments))
        self.names = list(named_leaves(dict(self.bound.arguments)))
        self.leaves = [cast(leaf, "float64") if _is_array(leaf) else leaf for leaf in self.leaves]
        self.data: dict[str, Any] = {}

    def choose_data(self, evaluate: Callable[[dict[str, Any]], Any]) -> None:
        """Make data of the arrays that `evaluate`, a function of data, lets pass as unknown."""
        arrays = {name: leaf for name, leaf in zip(self.names, self.leaves, strict=True) if _is_array(leaf)}
        chosen = those_that_trace(
            lambda leaves: evaluate(dict(zip(arrays, leaves, strict=True))), list(arrays.values())
        )
        self.data = {name: np.asarray(arrays[name]) for name, use in zip(arrays, chosen, strict=True) if use}

    def arguments(self, data: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        leaves = [data.get(name, leaf) for name, leaf in zip(self.names, self.leaves, strict=True)]
        bound = inspect.BoundArguments(self.bound.signature, jax.tree.unflatten(self.structure, leaves))
        return bound.args, bound.kwargs

    def trace(self, model: Any, data: dict[str, Any]) -> Any:
        from numpyro import handlers

        args, kwargs = self.arguments(data)
        return handlers.trace(model).get_trace(*args, **kwargs)

    def first_trace(self) -> Any:
        """Every site of the model, latents at zero of their unconstrained coordinates."""
        from numpyro import handlers

        seeded = handlers.seed(self.model, jax.random.PRNGKey(0))
        return self.trace(handlers.substitute(seeded, substitute_fn=_at_zero), {})


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


def _functions(call: Call, latents: list[str], observed: list[str]) -> dict[str, Any]:
    """The functions of (position, data), and of (key, data), that a target is made of."""
    from numpyro import handlers
    from numpyro.infer import util

    def log_density(position: Any, data: Any) -> jax.Array:
        return _log_density(call, position, data)

    def constrain(position: Any, data: Any) -> dict[str, Any]:
        args, kwargs = call.arguments(data)
        return util.constrain_fn(call.model, args, kwargs, position, return_deterministic=True)

    def log_likelihood(position: Any, data: Any) -> dict[str, Any]:
        args, kwargs = call.arguments(data)
        values = util.constrain_fn(call.model, args, kwargs, position)
        sites = call.trace(handlers.substitute(call.model, data=values), data)
        kept = {name: sites[name] for name in observed if not _is_factor(sites[name])}
        return {name: site["fn"].log_prob(site["value"]) for name, site in kept.items()}

    without_data = handlers.block(call.model, hide_fn=lambda site: site["name"] in observed)

    def log_prior(position: Any, data: Any) -> jax.Array:
        args, kwargs = call.arguments(data)
        return -jnp.asarray(util.potential_energy(without_data, args, kwargs, position))

    def draw_prior(key: jax.Array, data: Any) -> dict[str, Any]:
        sites = call.trace(handlers.seed(without_data, key), data)
        return {name: _unconstrained(sites[name]) for name in latents}

    return {
        "log_density": log_density,
        "constrain": constrain,
        "log_likelihood": log_likelihood,
        "prior": (log_prior, draw_prior),
    }


def _log_density(call: Call, position: Any, data: Any) -> jax.Array:
    from numpyro.infer import util

    args, kwargs = call.arguments(data)
    return -jnp.asarray(util.potential_energy(call.model, args, kwargs, position))


def _check(sites: Any, latents: list[str], observed: list[str]) -> None:
    """Raise with the reason when the model has no density on real parameters."""
    for name, site in sites.items():
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
    if not latents:
        raise ThermoclineError(
            "the model has no parameters: no numpyro.sample without `obs`. Its evidence is its likelihood."
        )
    for name in latents:
        if sites[name]["fn"].support.is_discrete:
            raise ThermoclineError(
                f"site {name} is discrete ({_kind(sites[name])}); gradients need real parameters. "
                "Sum it out, e.g. with dist.MixtureSameFamily."
            )
    not_a_number({name: np.asarray(sites[name]["value"]) for name in observed}, "the observed site")


def _caveats(sites: Any) -> tuple[str, ...]:
    """Why log Z may not be the model's evidence."""
    sentences = []
    for name, site in sites.items():
        if site["type"] != "sample":
            continue
        if _is_factor(site):
            sentences.append(
                f"numpyro.factor {name} multiplies the density by something that need not be normalised: "
                "log Z is the model's evidence only if it is."
            )
        if _is_latent(site) and "ImproperUniform" in _kinds(site):
            sentences.append(f"The prior of {name} is improper (ImproperUniform): the model has no evidence.")
        if _is_latent(site) and "MaskedDistribution" in _kinds(site):
            sentences.append(f"The prior of {name} is masked, so it is not normalised: log Z is not the evidence.")
        if site["scale"] is not None and np.any(np.asarray(site["scale"]) != 1):
            sentences.append(f"Site {name} is raised to a power (handlers.scale): log Z is not the evidence.")
    return tuple(sentences)


def _observed(sites: Any, observed: list[str], data: dict[str, Any]) -> tuple[str, ...]:
    """The data that are observed as they are, if that is all that is observed."""
    values = [np.asarray(sites[name]["value"]) for name in observed if not _is_factor(sites[name])]
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


def _unconstrained(site: Any) -> jax.Array:
    from numpyro.distributions import biject_to

    return jnp.asarray(biject_to(site["fn"].support).inv(site["value"]))


def _is_latent(site: Any) -> bool:
    return site["type"] == "sample" and not site["is_observed"]


def _is_factor(site: Any) -> bool:
    return "Unit" in _kinds(site)


def _kind(site: Any) -> str:
    return _kinds(site)[-1]


def _kinds(site: Any) -> list[str]:
    """Names of a distribution's classes, from the outermost wrapper in."""
    kinds, inner = [], site["fn"]
    while inner is not None:
        kinds.append(type(inner).__name__)
        inner = getattr(inner, "base_dist", None)
    return kinds


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, np.ndarray | jax.Array) and leaf.dtype.kind in "fiub"

"""Bases: normalised densities that can be sampled exactly."""

from thermocline.bases.base import (
    Base,
    BaseFit,
    NormalisedDensity,
    base_name,
    centres_of,
    check_base,
    fresh_draws,
    initial_scale,
    log_densities,
    sampled_rows,
)
from thermocline.bases.gaussian import Gaussian
from thermocline.bases.low_rank import LowRankGaussian
from thermocline.bases.mixture import Mixture
from thermocline.bases.student import StudentT
from thermocline.bases.tied import TiedMixture

BASES: dict[str, type] = {
    "gaussian": Gaussian,
    "low rank": LowRankGaussian,
    "student t": StudentT,
    "mixture": Mixture,
    "tied mixture": TiedMixture,
    "base": Base,
}

__all__ = [
    "BASES",
    "Base",
    "BaseFit",
    "Gaussian",
    "LowRankGaussian",
    "Mixture",
    "NormalisedDensity",
    "StudentT",
    "TiedMixture",
    "base_name",
    "centres_of",
    "check_base",
    "fresh_draws",
    "initial_scale",
    "log_densities",
    "sampled_rows",
]

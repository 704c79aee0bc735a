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
from thermocline.bases.blend import Blend
from thermocline.bases.constellation import Constellation
from thermocline.bases.gaussian import Gaussian
from thermocline.bases.low_rank import LowRankGaussian
from thermocline.bases.mixture import Mixture
from thermocline.bases.student import StudentT

BASES: dict[str, type] = {
    "gaussian": Gaussian,
    "low rank": LowRankGaussian,
    "student t": StudentT,
    "mixture": Mixture,
    "constellation": Constellation,
    "blend": Blend,
    "base": Base,
}

__all__ = [
    "BASES",
    "Base",
    "BaseFit",
    "Blend",
    "Constellation",
    "Gaussian",
    "LowRankGaussian",
    "Mixture",
    "NormalisedDensity",
    "StudentT",
    "base_name",
    "centres_of",
    "check_base",
    "fresh_draws",
    "initial_scale",
    "log_densities",
    "sampled_rows",
]

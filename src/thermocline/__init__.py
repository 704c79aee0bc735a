"""Continuously tempered Hamiltonian Monte Carlo: all the modes, and the evidence with its error."""

from thermocline.bases import Base, BaseFit, Gaussian, LowRankGaussian, Mixture, StudentT
from thermocline.errors import CheckpointError, ThermoclineError, ThermoclineWarning
from thermocline.estimators import Estimate
from thermocline.fits import (
    fit_advi,
    fit_auto,
    fit_bootstrap,
    fit_laplace,
    fit_local_mixture,
    fit_mixture,
    fit_moments,
    fit_pathfinder,
    fit_renyi,
)
from thermocline.frontends import from_numpy, from_numpyro, from_pymc, from_stan
from thermocline.many import ManyResults, sample_many
from thermocline.methods import GibbsTempering, JointTempering, SimulatedTempering, Untempered
from thermocline.modes.census import Mode
from thermocline.movers import HMC, NUTS
from thermocline.paths import Continuous, Ladder, Learned, Logistic, Monotone
from thermocline.result import Result, load, thermodynamic_integration
from thermocline.sample import extend, sample
from thermocline.target import Target

__all__ = [
    "HMC",
    "NUTS",
    "Base",
    "BaseFit",
    "CheckpointError",
    "Continuous",
    "Estimate",
    "Gaussian",
    "GibbsTempering",
    "JointTempering",
    "Ladder",
    "Learned",
    "Logistic",
    "LowRankGaussian",
    "ManyResults",
    "Mixture",
    "Mode",
    "Monotone",
    "Result",
    "SimulatedTempering",
    "StudentT",
    "Target",
    "ThermoclineError",
    "ThermoclineWarning",
    "Untempered",
    "extend",
    "fit_advi",
    "fit_auto",
    "fit_bootstrap",
    "fit_laplace",
    "fit_local_mixture",
    "fit_mixture",
    "fit_moments",
    "fit_pathfinder",
    "fit_renyi",
    "from_numpy",
    "from_numpyro",
    "from_pymc",
    "from_stan",
    "load",
    "sample",
    "sample_many",
    "thermodynamic_integration",
]

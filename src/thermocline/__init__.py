"""Continuously tempered Hamiltonian Monte Carlo: all the modes, and the evidence with its error."""

from thermocline import experimental, kernels
from thermocline.api import extend, sample
from thermocline.api_many import sample_many
from thermocline.auto import (
    fit_advi,
    fit_auto,
    fit_bootstrap,
    fit_ep,
    fit_laplace,
    fit_local_mixture,
    fit_mixture,
    fit_moments,
    fit_pathfinder,
    fit_renyi,
)
from thermocline.bases import Base, BaseFit, Gaussian, LowRankGaussian, Mixture, StudentT, TiedMixture
from thermocline.frontends import from_numpy, from_numpyro, from_pymc, from_stan
from thermocline.methods import (
    AnnealedImportance,
    GibbsTempering,
    JointTempering,
    ParallelTempering,
    SequentialMonteCarlo,
    SimulatedTempering,
    TemperedTransitions,
    Untempered,
)
from thermocline.movers import HMC, NUTS
from thermocline.opinions.bidirectional import ManySandwiches, Sandwich, bidirectional, bidirectional_many, validate
from thermocline.opinions.cross_check import CrossCheck, cross_check
from thermocline.opinions.own_sampler import ExtendedTarget, extended
from thermocline.opinions.path_sampling import count_based_evidence, thermodynamic_integration
from thermocline.paths import Continuous, Ladder, Learned, Logistic, Monotone, Neighbours, sigmoidal_betas
from thermocline.records import Estimate, Mode
from thermocline.results.compare import Comparison, compare
from thermocline.results.files import load
from thermocline.results.many import ManyResults
from thermocline.results.result import Result
from thermocline.support.errors import CheckpointError, ThermoclineError, ThermoclineWarning
from thermocline.target import Target

__version__ = "0.2.0"

__all__ = [
    "HMC",
    "NUTS",
    "AnnealedImportance",
    "Base",
    "BaseFit",
    "CheckpointError",
    "Comparison",
    "Continuous",
    "CrossCheck",
    "Estimate",
    "ExtendedTarget",
    "Gaussian",
    "GibbsTempering",
    "JointTempering",
    "Ladder",
    "Learned",
    "Logistic",
    "LowRankGaussian",
    "ManyResults",
    "ManySandwiches",
    "Mixture",
    "Mode",
    "Monotone",
    "Neighbours",
    "ParallelTempering",
    "Result",
    "Sandwich",
    "SequentialMonteCarlo",
    "SimulatedTempering",
    "StudentT",
    "Target",
    "TemperedTransitions",
    "ThermoclineError",
    "ThermoclineWarning",
    "TiedMixture",
    "Untempered",
    "bidirectional",
    "bidirectional_many",
    "compare",
    "count_based_evidence",
    "cross_check",
    "experimental",
    "extend",
    "extended",
    "fit_advi",
    "fit_auto",
    "fit_bootstrap",
    "fit_ep",
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
    "kernels",
    "load",
    "sample",
    "sample_many",
    "sigmoidal_betas",
    "thermodynamic_integration",
    "validate",
]

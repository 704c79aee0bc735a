"""The classes that files may hold, by tags of their own: modules and classes can be renamed, and tags stay.

A file names the tags of its objects; only these classes can come back, so that a file can make no other object.
"""

from thermocline.bases import Blend, Constellation, Gaussian, LowRankGaussian, Mixture, StudentT
from thermocline.methods import METHODS
from thermocline.methods.adiabatic import AdiabaticMonteCarlo
from thermocline.methods.extended_hamiltonian import Control, ExtendedHamiltonian
from thermocline.methods.gibbs import GibbsState
from thermocline.methods.parallel_tempering import Ensemble
from thermocline.methods.sequential import Group
from thermocline.methods.tuning import Bias, Learning, Tuning
from thermocline.movers import HMC, NUTS, Langevin, Metric, Move
from thermocline.paths import (
    Continuous,
    ExtendedPoint,
    Ladder,
    Learned,
    Logistic,
    Neighbours,
    Point,
    TemperatureSchedule,
)
from thermocline.paths.laws import Window
from thermocline.paths.reweighting import Curve, Profile
from thermocline.records import (
    AxisLabels,
    Cost,
    Estimate,
    Fingerprint,
    ModeTable,
    Phases,
    RunInfo,
    SearchRecord,
    TailIndex,
)

STORABLE: dict[str, type] = {
    "base/blend": Blend,
    "base/gaussian": Gaussian,
    "base/low-rank": LowRankGaussian,
    "base/mixture": Mixture,
    "base/student-t": StudentT,
    "base/tied-mixture": Constellation,
    "control/logistic": Logistic,
    "law/continuous": Continuous,
    "law/curve": Curve,
    "law/ladder": Ladder,
    "law/learned": Learned,
    "law/neighbours": Neighbours,
    "law/profile": Profile,
    "law/schedule": TemperatureSchedule,
    "law/window": Window,
    "method/adiabatic": AdiabaticMonteCarlo,
    "method/extended": ExtendedHamiltonian,
    "mover/hmc": HMC,
    "mover/langevin": Langevin,
    "mover/metric": Metric,
    "mover/move": Move,
    "mover/nuts": NUTS,
    "record/axis-labels": AxisLabels,
    "record/cost": Cost,
    "record/estimate": Estimate,
    "record/fingerprint": Fingerprint,
    "record/mode-table": ModeTable,
    "record/phases": Phases,
    "record/run-info": RunInfo,
    "record/search": SearchRecord,
    "record/tail-index": TailIndex,
    "state/ensemble": Ensemble,
    "state/extended": ExtendedPoint,
    "state/gibbs": GibbsState,
    "state/particles": Group,
    "state/point": Point,
    "tuning": Tuning,
    "tuning/bias": Bias,
    "tuning/control": Control,
    "tuning/learning": Learning,
}
STORABLE |= {f"method/{name}": made for name, made in METHODS.items() if isinstance(made, type)}
TAGS: dict[type, str] = {cls: tag for tag, cls in STORABLE.items()}


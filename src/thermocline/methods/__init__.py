"""Methods: ways to explore the path from base to target."""

from thermocline.methods.gibbs import GibbsTempering, SimulatedTempering
from thermocline.methods.joint import JointTempering
from thermocline.methods.method import Method
from thermocline.methods.untempered import Untempered

METHODS = {
    "gibbs": GibbsTempering,
    "joint": JointTempering,
    "simulated": SimulatedTempering,
    "untempered": Untempered,
}

__all__ = ["METHODS", "GibbsTempering", "JointTempering", "Method", "SimulatedTempering", "Untempered"]

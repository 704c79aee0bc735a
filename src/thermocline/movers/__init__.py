"""Movers: transitions that leave one density of the path invariant."""

from thermocline.movers.hmc import HMC, leapfrog
from thermocline.movers.langevin import Langevin
from thermocline.movers.metric import Metric, Scale, metric_of
from thermocline.movers.mover import Keys, Move, Mover
from thermocline.movers.nuts import NUTS

__all__ = [
    "HMC",
    "NUTS",
    "Keys",
    "Langevin",
    "Metric",
    "Move",
    "Mover",
    "Scale",
    "leapfrog",
    "metric_of",
]

"""Movers: transitions that leave one density of the path invariant."""

from thermocline.movers.hmc import HMC, Langevin, leapfrog
from thermocline.movers.metric import Metric, Scale, metric_of
from thermocline.movers.mover import Keys, Move, Mover, metropolis
from thermocline.movers.nuts import NUTS

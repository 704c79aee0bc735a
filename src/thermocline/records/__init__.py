"""Records: what flows from room to room, typed; NumPy arrays and plain values, no behaviour but their own reading."""

from thermocline.records.base_draws import BaseDraws
from thermocline.records.cost import Cost, Phases
from thermocline.records.draws import Draw, Draws, restored
from thermocline.records.estimate import Estimate
from thermocline.records.modes import Mode, ModeTable, TailIndex
from thermocline.records.run_info import AxisLabels, Fingerprint, RunInfo
from thermocline.records.search import SearchRecord
from thermocline.records.weighted_draws import WeightedDraws

__all__ = [
    "AxisLabels",
    "BaseDraws",
    "Cost",
    "Draw",
    "Draws",
    "Estimate",
    "Fingerprint",
    "Mode",
    "ModeTable",
    "Phases",
    "RunInfo",
    "SearchRecord",
    "TailIndex",
    "WeightedDraws",
    "restored",
]

"""Records: what flows from room to room, typed; NumPy arrays and plain values, no behaviour but their own reading."""

from thermocline.records.draws import BaseDraws, Draw, Draws, WeightedDraws, restored
from thermocline.records.estimate import Estimate, sum_of
from thermocline.records.modes import Mode, ModeTable, SearchRecord, TailIndex
from thermocline.records.run_info import AxisLabels, Cost, Fingerprint, Phases, RunInfo

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
    "sum_of",
]

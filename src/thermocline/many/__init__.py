"""Many targets of one shape: one compiled program, a Result each, and their joint log evidence."""

from thermocline.many.bidirectional import ManySandwiches, bidirectional_many
from thermocline.many.result import ManyResults
from thermocline.many.sample import sample_many

__all__ = ["ManyResults", "ManySandwiches", "bidirectional_many", "sample_many"]

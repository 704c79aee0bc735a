"""Some seconds of `make fuzz`: mostly calls that are refused before anything compiles."""

import pytest

from studies.fuzz import batch


@pytest.mark.parametrize(
    ("kind", "number"),
    [("options", 60), ("methods", 40), ("bases", 40), ("positions", 25), ("targets", 12), ("many", 25)],
)
def test_wrong_calls_are_refused_in_a_sentence_or_end_honestly(kind, number):
    found = list(batch(7, number, kind))
    assert len(found) == number
    assert not [each for each in found if each.fault]

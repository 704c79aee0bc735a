"""What is said of a release is the same wherever it is said."""

import re
import tomllib
from pathlib import Path

import pytest

import thermocline as tc

ROOT = Path(__file__).parent.parent
GONE = {"Blend", "Constellation"}  # names of 0.1, which docs/from-0.1.md tells what to write for
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "SECURITY.md"]
NAME = re.compile(r"\btc\.([A-Za-z_]\w*)(?:\.([a-z_]\w*))?")


def test_the_version_stands_in_one_place_and_is_the_same_in_all():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" in project["project"]["dynamic"]
    assert project["tool"]["hatch"]["version"]["path"] == "src/thermocline/__init__.py"
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    released = re.findall(r"^## \[(\d\S*)\] - (\d{4}-\d\d-\d\d)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert cited is not None
    assert cited[1] == released[0][0] == tc.__version__
    assert f"date-released: {released[0][1]}" in (ROOT / "CITATION.cff").read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_names_in_documents_exist(page):
    """`tc.name`, and `tc.name.attribute` where the name is a class or a module."""
    for name, attribute in NAME.findall(page.read_text()):
        if name in GONE and page.name == "from-0.1.md":
            assert not hasattr(tc, name)
            continue
        assert hasattr(tc, name), f"tc.{name}"
        found = getattr(tc, name)
        fields = getattr(found, "__dataclass_fields__", {})
        assert not attribute or hasattr(found, attribute) or attribute in fields, f"tc.{name}.{attribute}"


def test_what_the_reference_of_results_is_called_in_the_page_for_those_who_come_from_before():
    """Attributes that docs/from-0.1.md tells to write exist; those that it replaces do not."""
    result, fit = tc.Result, tc.BaseFit
    for name in ("modes", "mode_table", "log_evidence_chains", "search", "cost", "schedule", "info"):
        assert hasattr(result, name) or name in result.__dataclass_fields__, name
    assert "known_modes" not in result.__dataclass_fields__
    assert "notes" in fit._fields
    assert "story" not in fit._fields
    assert hasattr(tc.Mixture, "pooled_scale")
    assert not hasattr(tc.Mixture, "scale_tril")

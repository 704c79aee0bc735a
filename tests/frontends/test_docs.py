"""The examples of the pages run as they stand."""

import re
from pathlib import Path

import pytest

from tests.frontends.test_conjugate import NO_COMPILER

pytestmark = pytest.mark.slow
PAGES = Path(__file__).parents[2] / "docs" / "frontends"


@pytest.mark.parametrize("page", ["numpyro", "pymc", pytest.param("stan", marks=NO_COMPILER)])
def test_the_page_runs(page, capsys):
    blocks = re.findall(r"```python\n(.*?)```", (PAGES / f"{page}.md").read_text(), flags=re.DOTALL)
    names: dict = {}
    exec("\n".join(blocks), names)
    results = names["results"].values() if "results" in names else [names["result"]]
    assert all(result.verdict == "ok" for result in results), capsys.readouterr().out

"""The documents: every example runs, the site builds without a warning, and nothing is fetched to look at it."""

import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import thermocline as tc
from thermocline.checks import CHECKS
from thermocline.report import SECTIONS

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
FETCHED = re.compile(r'<(?:script|img|link)[^>]*(?:src|rel="stylesheet" href)="(http[^"]*)"')
PAGES = (
    *("README.md", "docs/index.md", "docs/extending.md", "docs/own-sampler.md", "docs/kernels.md", "docs/modes.md"),
    "docs/platforms.md",
)
SLOW = ("docs/index.md", "docs/own-sampler.md", "docs/modes.md")  # own samplers tests/opinions tests in any case
RUN_ELSEWHERE = {f"docs/frontends/{name}.md" for name in ("numpyro", "pymc", "stan")}  # by tests/frontends/test_docs.py
PLACE = re.compile(r"^\|.*\| `([a-zA-Z_.]+)` \|$", re.MULTILINE)


@pytest.mark.parametrize("page", [pytest.param(p, marks=pytest.mark.slow) if p in SLOW else p for p in PAGES])
def test_examples_run(page, tmp_path, monkeypatch, capsys):
    """The code of a page, in order, as one program; its assertions are part of it."""
    monkeypatch.chdir(tmp_path)
    for registry in (CHECKS, SECTIONS):  # what a page registers is gone after it
        for name, item in registry.items():
            monkeypatch.setitem(registry, name, item)
    known = {id(registry): set(registry) for registry in (CHECKS, SECTIONS)}
    text = (ROOT / page).read_text()
    names: dict = {"__name__": "__main__"}
    try:
        for block in BLOCK.finditer(text):
            line = text[: block.start(1)].count("\n")
            exec(compile("\n" * line + block[1], page, "exec"), names)
    finally:
        for registry in (CHECKS, SECTIONS):
            for name in set(registry) - known[id(registry)]:
                del registry[name]
    if page == "docs/index.md":
        share = names["result"].expectation(lambda p: p["a"] > 0)
        assert abs(share.z_score(0.5)) < 4
        assert names["comparison"].ranking == sorted(
            ("square", "line"), key=lambda name: -names["comparison"].log_evidences[name].value
        )


def test_every_page_with_code_is_run():
    pages = [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]
    with_code = {str(page.relative_to(ROOT)) for page in pages if BLOCK.search(page.read_text())}
    assert with_code == set(PAGES) | RUN_ELSEWHERE


def test_every_function_of_the_equations_table_exists():
    places = PLACE.findall((ROOT / "docs" / "architecture.md").read_text())
    assert len(places) > 50
    for place in places:
        pkgutil.resolve_name(place)


def test_every_numbered_equation_has_a_row():
    """The paper numbers them from 1 to 54."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    ranges = re.findall(r"^\| \((\d+)\)(?:–\((\d+)\))? \|", text, re.MULTILINE)
    numbers = [number for first, last in ranges for number in range(int(first), int(last or first) + 1)]
    assert numbers == list(range(1, 55))


def test_the_site_builds_without_a_warning(tmp_path):
    pytest.importorskip("mkdocs")
    pytest.importorskip("mkdocstrings")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    for page in (tmp_path / "site").glob("*.html"):
        assert FETCHED.findall(page.read_text()) == [], page.name
    reference = (tmp_path / "site" / "api.html").read_text()
    assert 'id="thermocline.Result.log_evidence"' in reference


def test_the_reference_lists_every_public_name():
    listed = set(re.findall(r"^::: thermocline\.(\w+)$", (ROOT / "docs" / "api.md").read_text(), re.MULTILINE))
    assert listed == set(tc.__all__)


def test_every_check_is_explained():
    """By the names that checks print, without what they are about."""
    text = (ROOT / "docs" / "diagnosing.md").read_text()
    source = "".join(path.read_text() for path in (ROOT / "src/thermocline/checks").glob("*.py"))
    names = re.findall(r'(?:at_least|at_most|Check)\(\s*f?"([^"({]+)', source)
    assert len(names) >= 15
    for name in names:
        assert f"`{name.strip()}" in text or f"{name.strip()}`" in text, name


def test_the_table_of_constants_has_the_values_of_the_code():
    rows = re.findall(r"^\| `([a-z_.]+\.[A-Z_]+)` \| (.+?) \|", (ROOT / "docs/method.md").read_text(), re.MULTILINE)
    assert 0 < len(rows) <= 40
    for name, value in rows:
        module, constant = name.rsplit(".", 1)
        assert repr(getattr(importlib.import_module(f"thermocline.{module}"), constant)) == value, name

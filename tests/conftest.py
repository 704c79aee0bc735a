"""As users run it: JAX's settings are left alone, in single precision, and our own warnings are errors."""

import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import thermocline as tc
from thermocline.support.precision import computing_in

LONG = (  # folders and files whose tests compile much: `make check` leaves them out, but for one test of each
    *("auto", "checks", "cli", "conformance", "engine", "experiments", "frontends", "many", "methods", "movers"),
    *("opinions", "report", "results", "test_bad_input.py", "test_cold_start.py", "test_docs.py", "test_errors.py"),
    *("test_sample.py",),
)


ENTERED_ELSEWHERE = (
    *("cli", "conformance", "experiments", "frontends", "many", "opinions", "report", "results"),
    *("test_cold_start.py", "test_docs.py"),
)


def pytest_collection_modifyitems(items):
    """Mark what is long, by where it stands; the first test of such a file stays in, so that every room is entered."""
    seen = set()
    for item in items:
        place = item.path.relative_to(Path(__file__).parent).parts
        if place[0] in LONG and (item.path in seen or place[0] in ENTERED_ELSEWHERE):
            item.add_marker(pytest.mark.long)
        seen.add(item.path)


@pytest.fixture(autouse=True)
def settings_untouched():
    """No test, and so no public call, leaves JAX configured otherwise than it found it."""
    before = dict(jax.config.values)
    assert not jax.config.jax_enable_x64, "tests start with x64 off, as users do"
    yield
    assert dict(jax.config.values) == before
    assert jnp.ones(1).dtype == jnp.float32


@pytest.fixture(scope="module", autouse=True)
def programs_that_fit():
    """Compiled programs hold memory maps, of which Linux allows a process 65530; beyond them compiling crashes."""
    yield
    maps = Path("/proc/self/maps")
    if maps.exists() and len(maps.read_text().splitlines()) > 30_000:
        jax.clear_caches()


@pytest.fixture(autouse=True)
def own_warnings_are_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error", tc.ThermoclineWarning)
        yield


@pytest.fixture
def double():
    """The inside of a public call: double precision, for tests of the parts."""
    with computing_in("float64"):
        yield

"""The report: one page that a browser opens without a word, with its figures, and with users' names as text."""

import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import thermocline as tc
from tests import problems
from thermocline.checks import Check
from thermocline.report import SECTIONS, Section
from thermocline.report.posterior import plane

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")
HOSTILE = "<script>throw 1</script>"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--allow-file-access-from-files",
    "--enable-logging=stderr",
]
in_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine: the page is not opened")


def log_density(position, data):
    return problems.mixture_log_density(jnp.append(position[HOSTILE], position["$y$"]), data)


@pytest.fixture(scope="module")
def result() -> tc.Result:
    problem = problems.mixture(3, distance=5.0)
    target = tc.Target(log_density, {HOSTILE: np.zeros(2), "$y$": 0.0}, problem.target.data)
    root = np.linalg.cholesky(np.diag([7.0, 1.0, 1.0]))
    base = tc.Gaussian({HOSTILE: np.array([1.0, 0.0]), "$y$": 0.0}, root[[2, 0, 1]][:, [2, 0, 1]])
    return tc.sample(target, base=base, num_chains=4, num_warmup=150, num_draws=300, progress=False)


@pytest.fixture(scope="module")
def page(result, tmp_path_factory) -> Path:
    return result.report(tmp_path_factory.mktemp("report") / "report.html")


class Outline(HTMLParser):
    """Tags in order, headings' texts, identifiers and addresses."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags, self.headings, self.identifiers, self.addresses = [], [], [], []
        self.inside = False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.inside = tag == "h2"
        given = dict(attrs)
        self.identifiers += [given["id"]] if "id" in given else []
        self.addresses += [given[name] for name in ("src", "href", "xlink:href") if name in given]

    def handle_data(self, data):
        if self.inside:
            self.headings.append(data)
            self.inside = False


def test_questions_come_in_order_and_figures_are_there(page):
    outline = Outline(page.read_text())
    assert outline.headings == list(SECTIONS)
    assert outline.tags.count("svg") == outline.tags.count("figure") >= 12
    assert len(outline.identifiers) == len(set(outline.identifiers))


def test_nothing_is_loaded_from_outside_and_nothing_runs(page):
    text = page.read_text()
    outline = Outline(text)
    assert "script" not in outline.tags
    assert all(address.startswith(("#", "data:")) for address in outline.addresses), outline.addresses
    assert "@import" not in text
    assert set(re.findall(r"url\((.)", text)) <= {"#"}


def test_names_of_users_are_text(page):
    text = page.read_text()
    assert HOSTILE not in text
    assert "&lt;script&gt;throw 1&lt;/script&gt;[0]" in text
    assert "$y$" in text


def test_the_numbers_are_those_of_the_result(result, page):
    text = page.read_text()
    assert str(result.log_evidence) in text
    assert all(check.name.replace("<", "&lt;").replace(">", "&gt;") in text for check in result.checks)
    assert all(str(mode.mass) in text for mode in result.modes)
    assert f"{len(result.modes)} modes were found." in text


def test_the_page_is_small(page):
    assert page.stat().st_size < 1_000_000
    assert [file.name for file in page.parent.iterdir()] == ["report.html"]


def test_a_loaded_result_gives_the_same_page(result, page, tmp_path):
    result.save(tmp_path / "run.nc")
    again = tc.load(tmp_path / "run.nc").report(tmp_path / "again.html")
    drop = re.compile(r"drawing\d+-")
    assert drop.sub("", again.read_text()) == drop.sub("", page.read_text())


def test_a_run_without_evidence_or_modes_has_a_page_too(result, tmp_path):
    info = replace(result.info, has_evidence=False)
    bare = replace(result, law=None, info=info, mode_table=None, mode_locations={})
    text = bare.report(tmp_path / "bare.html").read_text()
    assert "the method gives no evidence" in text
    assert "Modes were not looked for." in text


def test_caveats_and_advice_are_said_first(result, tmp_path):
    doubtful = replace(result, info=replace(result.info, caveats=("the prior of x is <flat>",)))
    doubtful.__dict__["checks"] = (Check("a", 1.0, 2.0, "failed", "Do <this>."),)
    text = doubtful.report(tmp_path / "doubtful.html").read_text()
    assert "Caveat: the prior of x is &lt;flat&gt;" in text
    assert '<p class="word failed">failed</p><p>Do not use these numbers' in text
    assert text.index("Caveat: the prior of x is") < text.index("<nav>")
    assert text.index("failed: Do &lt;this&gt;.") < text.index("<h3>Checks</h3>")


def test_a_section_is_a_function_and_a_line(result, tmp_path):
    from thermocline.report import head_of_one, write_page

    own = {"My <own>?": lambda _: Section(("Yes.",))}
    text = write_page(result, tmp_path / "own.html", own, head_of_one(result)).read_text()
    assert "<h2>My &lt;own&gt;?</h2>\n<p>Yes.</p>" in text


def test_the_plane_shows_the_direction_between_modes():
    generator = np.random.default_rng(0)
    sign = generator.choice([-1.0, 1.0], 500)
    position = generator.normal(size=(500, 4)) + np.outer(sign, [0, 0, 0, 6.0])
    origin, axes, words = plane(position, np.array([[0, 0, 0, 6.0], [0, 0, 0, -6.0]]), list("abcd"))
    first = (position - origin) @ axes[0]
    assert abs(np.corrcoef(first, sign)[0, 1]) > 0.98
    assert words[1] == "largest remaining spread"
    assert plane(position[:, :2], np.zeros((1, 2)), ["a", "b"])[2] == ["a", "b"]


def browse(page: Path, folder: Path, *options: str) -> tuple[str, list[str]]:
    """The page as the browser sees it, and what was said on the console."""
    command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={folder}", *options, "--dump-dom", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


@in_browser
def test_a_browser_opens_it_without_a_word(page, tmp_path):
    seen, said = browse(page, tmp_path / "profile")
    assert said == []
    assert seen.count("<svg") == Outline(page.read_text()).tags.count("svg")
    (tmp_path / "bad.html").write_text("<script>throw 1</script>")
    assert browse(tmp_path / "bad.html", tmp_path / "profile")[1], "a page that fails is not seen to fail"


@in_browser
def test_it_fits_a_phone(page, tmp_path):
    """No wider than the screen, and figures of a width that can be read; seen from a frame of a phone's size."""
    (tmp_path / "phone.html").write_text(
        f"""<iframe id="f" src="{page.as_uri()}" style="width:390px;height:800px;border:0"></iframe><script>
        f.onload = () => {{ const d = f.contentDocument, w = [...d.querySelectorAll("svg")].map(s => s.clientWidth);
        document.title = [d.documentElement.scrollWidth, Math.min(...w), Math.max(...w)].join(" "); }}</script>"""
    )
    seen, _ = browse(tmp_path / "phone.html", tmp_path / "profile", "--virtual-time-budget=5000")
    found = re.search(r"<title>(\d+) (\d+) (\d+)</title>", seen)
    assert found, seen[:500]
    width, narrowest, widest = map(int, found.groups())
    assert width <= 390
    assert 300 <= narrowest <= widest <= 390


def test_a_draw_that_no_mode_explains_is_drawn_all_the_same(result, tmp_path):
    some = replace(result)
    some.__dict__["basins"] = np.arange(len(some.positions)) % (len(result.mode_table.location) + 1)
    assert some.report(tmp_path / "report.html").exists()

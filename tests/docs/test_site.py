"""The documentation site builds without a warning, its notebooks run, and every link inside it leads somewhere."""

from __future__ import annotations

import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from made_once import made_once
from tilewise.i18n.messages import REVIEWED

pytest.importorskip("sphinx")
pytest.importorskip("nbclient")

DOCS = Path(__file__).parents[2] / "docs"
MADE = ("_build", "_live", "reference.md")


BOOKS = {book: sorted(DOCS.glob(f"notebooks/**/{book}.ipynb")) for book in ("course", "graphs", "viterbi")}
SHOWN = {  # output that only a run produces
    "course": ("<svg", "packed panels"),  # a plan shows itself as a table
    "viterbi": ("['sun', 'rain'", "['nắng', 'mưa'", "['sol', 'chuva'"),
}


@pytest.fixture(scope="module", params=[pytest.param(x, marks=pytest.mark.slow) for x in ("one", "all")])
def notebooks(request):
    """Those that are run with the site: one drawn at random, or all nine."""
    every = [book for books in BOOKS.values() for book in books]
    if request.param == "all":
        return every
    drawn = random.Random(os.environ["TILEWISE_TEST_SEED"]).choice(every)
    print(drawn.relative_to(DOCS))
    return [drawn]


@pytest.fixture(scope="module")
def site(run_folder, notebooks):
    """The site, built from a copy, so that nothing is written into the checkout; once for all workers."""
    return made_once(run_folder / f"site-{len(notebooks)}.pickle", partial(built, run_folder, notebooks))


def built(run_folder, notebooks):
    folder = Path(tempfile.mkdtemp(prefix="site-", dir=run_folder))
    shutil.copytree(DOCS, folder / "docs", ignore=shutil.ignore_patterns(*MADE))
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "docs", "html"]
    few = ":".join(str(book.relative_to(DOCS / "notebooks")) for book in notebooks)
    settings = {"TILEWISE_SITE_NOTEBOOKS": few}
    settings |= {"PYTHONPATH": os.pathsep.join(filter(None, [str(DOCS.parent / "src"), os.environ.get("PYTHONPATH")]))}
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **settings}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return folder / "html"


class Links(HTMLParser):
    def __init__(self):
        super().__init__()
        self.targets, self.anchors = [], set()

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.anchors.update(filter(None, (values.get("id"), values.get("name"))))
        for name in ("href", "src"):
            if values.get(name):
                self.targets.append(values[name])


def parsed(page):
    links = Links()
    links.feed(page.read_text(encoding="utf-8"))
    return links


def test_every_link_inside_leads_somewhere(site):
    pages = {page: parsed(page) for page in site.rglob("*.html") if page.name != "live.html"}
    broken = []
    for page, links in pages.items():
        for target in links.targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc or target.startswith("data:"):
                continue
            where = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if not where.exists():
                broken.append(f"{page.name}: {target}")
            elif parts.fragment and where in pages and unquote(parts.fragment) not in pages[where].anchors:
                broken.append(f"{page.name}: {target} (no such place on that page)")
    assert broken == []


def test_every_written_page_is_reached(site):
    written = {
        p.relative_to(DOCS).with_suffix(".html") for p in DOCS.rglob("*.md") if not {"source", *MADE} & set(p.parts)
    }
    assert all((site / page).exists() for page in written)
    index = (site / "index.html").read_text(encoding="utf-8")
    for page in ("guide/1-first-product", "guide/8-scale", "how/torch", "reference", "kernels", "benchmarks", "page"):
        assert f'href="{page}.html"' in index


def test_the_page_is_embedded_live(site):
    assert (site / "live.html").stat().st_size > 50_000
    assert '<iframe src="live.html"' in (site / "page.html").read_text(encoding="utf-8")


def test_notebooks_were_run_and_show_what_they_made(site, notebooks):
    for book in notebooks:
        page = (site / book.relative_to(DOCS).with_suffix(".html")).read_text(encoding="utf-8").replace("&#39;", "'")
        if book.stem == "course":
            assert all(text in page for text in SHOWN["course"]), book
        elif book.stem == "viterbi":
            assert any(text in page for text in SHOWN["viterbi"]), book
    assert "Không" in (site / "notebooks" / "vi" / "course.html").read_text(encoding="utf-8")


def test_notebooks_are_kept_without_outputs():
    for book in (DOCS / "notebooks").rglob("*.ipynb"):
        cells = json.loads(book.read_text(encoding="utf-8"))["cells"]
        assert all(not cell.get("outputs") for cell in cells), f"{book.name}: clear its outputs"


def code_of(book):
    """The syntax of its cells without their strings, which are translated."""
    cells = json.loads(book.read_text(encoding="utf-8"))["cells"]
    trees = [ast.parse("".join(cell["source"])) for cell in cells if cell["cell_type"] == "code"]
    for node in (n for tree in trees for n in ast.walk(tree)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return [cell["cell_type"] for cell in cells], [ast.dump(tree) for tree in trees]


@pytest.mark.parametrize("language", sorted(set(REVIEWED) - {"en"}))
def test_notebooks_do_the_same_in_every_language(language):
    """The English ones are run with the site, and so are these; here no cell is missing or outdated."""
    english = sorted((DOCS / "notebooks").glob("*.ipynb"))
    assert [b.name for b in english] == [b.name for b in sorted((DOCS / "notebooks" / language).glob("*.ipynb"))]
    for book in english:
        assert code_of(DOCS / "notebooks" / language / book.name) == code_of(book), book.name


def test_the_reference_names_everything_public(site):
    import tilewise

    text = (site / "reference.html").read_text(encoding="utf-8")
    missing = [name for name in tilewise.__all__ if f"tw.{name}" not in text]
    assert missing == []

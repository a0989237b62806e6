"""The documentation site: `make docs`. Generated pages: the reference (from docstrings), the notebooks
(run while building) and the live page. They are written into this folder when a build begins, and git ignores them."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "making"))

import tilewise as tw  # noqa: E402

project = "tilewise"
author = "the tilewise project"
version = release = tw.__version__
html_title = f"tilewise {version}"
extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "making", "tutorial/source", "notebooks/.ipynb_checkpoints"]
html_theme = "furo"
html_extra_path = ["_live"]
html_static_path = ["_static"]
html_css_files = ["site.css"]
templates_path: list[str] = []
html_show_copyright = False
html_show_sourcelink = False
html_copy_source = False


def made(_app: object) -> None:
    """Writes the generated pages before Sphinx collects them."""
    from notebook_pages import page_of
    from reference_page import reference

    (HERE / "reference.md").write_text(reference(), encoding="utf-8")
    books = sorted((HERE / "notebooks").rglob("*.ipynb"))
    few = os.environ.get("TILEWISE_SITE_NOTEBOOKS")  # tests run a few of them
    run = [few is None or str(book.relative_to(HERE / "notebooks")) in few.split(":") for book in books]
    with ThreadPoolExecutor(2) as two:  # each runs in a separate process
        for book, page in zip(books, two.map(page_of, books, run), strict=True):
            book.with_suffix(".md").write_text(page, encoding="utf-8")
    (HERE / "_live").mkdir(exist_ok=True)
    tw.explore("tiled_edges", shape=(3, 3, 3), tile=2).save(HERE / "_live" / "live.html")


def setup(app: object) -> None:
    made(app)  # pages are collected right after this

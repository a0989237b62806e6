"""A notebook as a page: run from the first cell to the last, then its text, code and outputs as Markdown."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "notebooks"
LONGEST = 60  # markdown of output that a page shows


def read(book: Path, run: bool) -> Any:
    """The notebook, with its outputs if it is to be run; a cell that fails ends the build."""
    import nbformat

    made = nbformat.read(book, as_version=4)
    if not run:
        return made
    from nbclient import NotebookClient

    NotebookClient(
        made, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(book.parent)}}
    ).execute()
    return made


def page_of(book: Path, run: bool = True) -> str:
    markdown: list[str] = []
    for cell in read(book, run).cells:
        if cell.cell_type == "markdown":
            markdown += [cell.source, ""]
            continue
        markdown += ["```python", cell.source, "```", ""]
        for output in cell.outputs:
            markdown += shown(output)
    markdown += [
        f"*This page is `docs/notebooks/{book.relative_to(FOLDER).as_posix()}`, run when the site was built.*",
        "",
    ]
    return "\n".join(markdown)


def shown(output: Any) -> list[str]:
    if output.output_type == "stream":
        return fenced(output.text)
    data = output.get("data", {})
    if "image/svg+xml" in data:
        return [re.sub(r"\n\s*\n", "\n", "".join(data["image/svg+xml"])), ""]
    if "text/html" in data:
        return ["".join(data["text/html"]).replace("\n", ""), ""]
    return fenced("".join(data.get("text/plain", "")))


def fenced(text: str) -> list[str]:
    markdown = text.rstrip().splitlines()
    if len(markdown) > LONGEST:
        markdown = [*markdown[: LONGEST - 1], "…"]
    return ["```text", *markdown, "```", ""] if markdown else []

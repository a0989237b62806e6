"""Documents name files, commands and suites that exist, and all of the latter two."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tilewise.bench.suites import SUITES
from tilewise.cli.main import COMMANDS

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "tilewise"
FILE_TABLE = re.compile(r"^\| file of `([\w/]+)/` .*\n\|.*\n((?:\|.*\n)+)", re.M)


@pytest.mark.parametrize("page", ["tensor-cores.md", "dtypes.md"])
def test_tables_of_files(page):
    tables = FILE_TABLE.findall((ROOT / "docs" / page).read_text())
    assert tables
    for folder, rows in tables:
        names = re.findall(r"^\| `([^`]+)`", rows, re.M)
        gone = [n for n in names if not (SOURCE / folder / n).is_file() and not (SOURCE / "kernels" / n).is_file()]
        assert not gone


def test_every_command_and_suite_is_on_the_page_of_commands():
    page = (ROOT / "docs" / "commands.md").read_text()
    named = {name for text in re.findall(r"`([^`]+)`", page) for name in text.split()}
    assert {*COMMANDS, *SUITES} <= named

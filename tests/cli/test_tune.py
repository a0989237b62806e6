"""`tilewise tune` where there is no card: what it shares, and what it refuses."""

from __future__ import annotations

import getpass
import json
import socket

from tilewise.cli.main import run
from tilewise.cli.tune import _share
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.tuning import TunedClass, TunedTable, table_of

TABLE = TunedTable(
    "Tesla T4", {"mma_sync float16 NN 2^10.0": TunedClass((1024, 1024, 1024), "64x64", 2e-4, "128x128", 3e-4)}
)


def test_a_shared_file_has_the_figures_the_table_and_no_name_of_a_user(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "t4.json"
    _share(path, KNOWN_CARDS["t4"], TABLE)
    text = path.read_text(encoding="utf-8")
    document = json.loads(text)
    assert document["figures"]["arch"] == "sm_75"
    assert document["figures"]["tensor_rates"] == KNOWN_CARDS["t4"].tensor_rates
    assert table_of(document["table"]) == TABLE
    assert set(document) == {"tilewise", "figures", "table"}
    for name in (getpass.getuser(), socket.gethostname(), str(tmp_path)):
        assert len(name) < 4 or name not in text.replace("tilewise", "")


def test_nothing_is_shared_unless_a_file_is_named(tmp_path):
    _share(None, KNOWN_CARDS["t4"], TABLE)
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_written_is_refused_before_anything_is_measured(tmp_path, capsys):
    assert run(["tune", "--share", str(tmp_path / "missing" / "t4.json")]) == 2
    assert "missing does not exist: make it first" in capsys.readouterr().err

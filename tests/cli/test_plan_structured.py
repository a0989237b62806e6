"""`tilewise plan` of values with fields: the step's own issue limit, on this CPU and on a card that is not present."""

from __future__ import annotations

import json

from tilewise.cli.main import run


def planned(capsys, *arguments):
    assert run(["plan", "--shape", "512x256x128", *arguments]) == 0
    return capsys.readouterr().out


def test_it_prints_the_issue_limit(capsys):
    for device in ("cpu", "h200"):
        assert "issue limit" in planned(
            capsys, "--semiring", "min_count", "--dtype", "float32,int32", "--device", device
        )
        document = json.loads(planned(capsys, "--semiring", "4_best", "--device", device, "--json"))
        assert document["floor"] == 512 * 256 * 128 / document["limit"]


def test_a_cards_text_is_whole(capsys):
    text = planned(capsys, "--semiring", "dual", "--device", "h200", "--source")
    assert "struct __align__(8) Value" in text
    assert 'extern "C" __global__' in text


def test_dtypes_that_do_not_fit_the_fields_are_refused(capsys):
    arguments = ["--shape", "5x5x5", "--semiring", "min_count", "--dtype", "float32,int32,int8"]
    assert run(["plan", *arguments]) == 2
    assert "has 3 dtypes, and min_count has the fields length, paths" in capsys.readouterr().err

"""The collection of wrong kernels, each fault found at its line, and of right kernels that look wrong.

A comment marks the kinds of fault found at a line: `// fault: race, wrong-product`. Other findings are errors, except
at lines marked `// may:`, whose consequences depend on shape or schedule.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tilewise.teaching.trace import check

HERE = Path(__file__).parents[1] / "kernels"
WRONG = sorted((HERE / "wrong").glob("*.cu"))
RIGHT = sorted((HERE / "right").glob("*.cu"))

OPTIONS = {
    "index_overflow": {
        "args": {"P": np.zeros(1000, np.float32), "rows": 60000, "cols": 60000}, "grid": (1,), "block": (4, 4),
    },
    "shared_sum_without_a_barrier": {
        "args": {"M": np.ones((3, 64), np.float32), "out": np.zeros(3, np.float32), "n": 64}, "grid": (3,),
        "block": (64,),
    },
    "race_between_blocks": {"shape": (8, 8, 8)},
}  # fmt: skip


def marked(text, word):
    out = set()
    for number, line in enumerate(text.splitlines(), 1):
        found = re.search(rf"// {word}: (.*)", line)
        if found:
            out |= {(number, kind.strip()) for kind in found[1].split(",")}
    return out


def found_in(path):
    report = check(path, **OPTIONS.get(path.stem, {}))
    return report, {(f.line, str(f.kind)) for f in (*report.seen, *report.at_other_sizes)}


@pytest.mark.drawn(6)
@pytest.mark.parametrize("path", WRONG, ids=[p.stem for p in WRONG])
def test_every_fault_is_found_at_its_line_and_nowhere_else(path):
    text = path.read_text(encoding="utf-8")
    expected, allowed = marked(text, "fault"), marked(text, "may")
    report, found = found_in(path)
    assert expected
    assert found - allowed == expected
    for finding in (*report.seen, *report.at_other_sizes):
        assert finding.message, finding
        assert finding.hint, f"{finding} says nothing of what to change"
        assert finding.place is None or finding.place.text.strip()


@pytest.mark.parametrize("path", RIGHT, ids=[p.stem for p in RIGHT])
def test_right_kernels_that_look_wrong_are_clean(path):
    report, _ = found_in(path)
    assert report.clean, [str(f) for f in report.faults]
    assert not report.undecided
    assert len(report.runs) >= 3 or path.stem == "a_sum_is_no_product"

"""printf by Python's % operator gives the same bytes as the general formatter, for random formats and values."""

from __future__ import annotations

import random
import struct

from seeds import next_seed
from tilewise.emulator.machine.formatting import format_quickly, formatted, python_format

FLOATS = (0.0, -0.0, 1e300, float("inf"), float("nan"), 0.1, -2.5)
WHOLES = (0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1)


def drawn(r):
    kind = r.choice("dduxfegfeg")
    length = r.choice(["", "", "l", "ll", "z"]) if kind in "du" else r.choice(["", "l"]) if kind in "fg" else ""
    flags = "".join(r.sample("-+ 0", r.randrange(3)))
    text = f"a%{flags}{r.choice(['', '', '8', '3'])}{r.choice(['', '', '.0', '.3', '.10', '.'])}{length}{kind}%%b"
    tag = 4 if kind in "feg" else 0 if not length else 2 if kind == "d" else 3
    if r.random() < 0.2:
        tag = r.randrange(6)
    (bits,) = struct.unpack("<Q", struct.pack("<d", r.choice([*FLOATS, r.gauss(0, 1e5), r.random() * 1e-9])))
    return text.encode(), tag, bits if tag == 4 else r.choice([*WHOLES, r.getrandbits(64), r.getrandbits(20)])


def test_quick_formatting_equals_general_formatting():
    seed = next_seed()
    r = random.Random(seed)
    taken = 0
    for _ in range(3000):
        text, tag, bits = drawn(r)
        how = python_format(text)
        made = None if how is None else format_quickly(how, struct.pack("<QQ", tag, bits))
        if made is not None:
            taken += 1
            careful = formatted(text, [(tag, bits)], lambda a: b"", lambda m: None)
            assert made == careful, f"seed {seed}: {text!r} of {bits} ({tag})"
    assert taken > 500, f"seed {seed}"

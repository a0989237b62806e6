"""Fingerprints, and 200 products whose bits every machine has."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from click.testing import CliRunner

import tilewise as tw
from tilewise.cli.verify_bits import command
from tilewise.errors import FileError
from tilewise.functions.fingerprint import drawn, known_products


def test_a_fingerprint_is_a_digest_of_dtype_shape_and_bits():
    x = np.arange(6, dtype="<f4").reshape(2, 3)
    want = "bits1-" + hashlib.sha256(b"float32 2x3\n" + x.tobytes()).hexdigest()[:32]
    for same in (x, np.asfortranarray(x), x.astype(">f4"), np.repeat(x, 2, axis=1)[:, ::2]):
        assert tw.fingerprint(same) == want
    others = [x.T, x.astype(np.float64), x.reshape(-1), -x]
    assert len({want, *map(tw.fingerprint, others)}) == 5


def test_operands_are_drawn_by_integers_alone():
    z = (5 << 32) + 7
    z = z * 0x9E3779B97F4A7C15 % 2**64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
    z ^= z >> 31
    want = Fraction(z >> 40, 2**24) / 2 ** (z >> 1 & 7) * (-1 if z & 1 else 1)
    assert Fraction(float(drawn(8, "float32", 5)[7])) == want
    assert drawn(8, "int8", 5)[7].view(np.uint8) == z & 255


def test_every_known_product_has_its_bits_here():
    known = list(known_products())
    assert len(known) == 200
    assert Counter(p.dtype for p in known)["float32"] >= 64
    different = [p for p in known if p.made() != p.fingerprint]
    assert not different


def test_the_command(tmp_path):
    P = np.ones((2, 2), np.float32)
    np.save(tmp_path / "P.npy", P)
    made = CliRunner().invoke(command, [str(tmp_path / "P.npy"), "--json"], standalone_mode=False)
    assert json.loads(made.output)["arrays"] == {str(tmp_path / "P.npy"): tw.fingerprint(P)}
    first = next(known_products())
    row = [first.shape, first.dtype, first.semiring, first.seed, "bits1-0"]
    (tmp_path / "wrong.json").write_text(json.dumps({"definition": 1, "products": [row]}))
    made = CliRunner().invoke(command, [str(tmp_path / "wrong.json")], standalone_mode=False)
    assert made.return_value == 1
    assert first.fingerprint in made.output
    (tmp_path / "older.json").write_text(json.dumps({"definition": 0, "products": []}))
    with pytest.raises(FileError, match="definition 0"):
        CliRunner().invoke(command, [str(tmp_path / "older.json")], standalone_mode=False, catch_exceptions=False)

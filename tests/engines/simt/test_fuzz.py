"""Whatever text comes in: no crash, no hang past the limits, no exception but our own."""

from __future__ import annotations

import random
import time

import pytest
from fuzz import bent

from tilewise.engines.simt.limits import Limits
from tilewise.engines.simt.source import decode
from tilewise.errors import KernelError, TilewiseError
from tilewise.tracing import check

LIMITS = Limits(steps=3000, seconds=0.5, memory=1 << 26, tokens=20_000, touches=4, printf=5)
PATIENCE = 20.0  # seconds for one input: the limits allow about one, the rest is for a busy machine
IN_CI, IN_ALL, CHUNKS = 2000, 100_000, 50


def feed(number, text):
    """One input through everything: read, run on a small shape, judge. True where it ran."""
    start, refused = time.perf_counter(), None
    try:
        check(text, shape=(3, 3, 3), tile=2, limits=LIMITS, adversarial=number % 8 == 0)
    except TilewiseError as error:
        refused = error
    except BaseException as error:
        raise AssertionError(f"input {number} ends with {type(error).__name__}: {error}\n{text!r}") from error
    taken = time.perf_counter() - start
    assert taken < PATIENCE, f"input {number} takes {taken:.1f} s\n{text!r}"
    if isinstance(refused, KernelError):
        lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        assert 0 <= refused.line <= len(lines) + 1, f"input {number}: there is no line {refused.line}\n{text!r}"
    return refused is None


def test_a_few_thousand():
    ran = sum(feed(number, bent(number)) for number in range(IN_CI))
    assert ran > IN_CI // 50  # not all of them stop at the first token


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_hundred_thousand(chunk):
    size = IN_ALL // CHUNKS
    for number in range(chunk * size, (chunk + 1) * size):
        feed(number, bent(number))


def test_any_bytes_can_be_read():
    r = random.Random(0)
    for number in range(300):
        data = bytes(r.randrange(256) for _ in range(r.randrange(200)))
        feed(number, decode(data) + "\n")


def test_an_input_can_be_made_again():
    assert bent(17) == bent(17)
    assert len({bent(n) for n in range(100)}) > 95

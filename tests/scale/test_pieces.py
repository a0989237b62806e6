"""Long products run in pieces: the same product, and Ctrl-C is handled between two of them."""

from __future__ import annotations

import _thread
import os
import random
import signal
import threading
import time
from functools import partial

import numpy as np
import pytest

import tilewise as tw
from operands import values
from oracle import assert_product
from seeds import next_seed
from tilewise.backends.cpu import run as cpu
from tilewise.dispatch import product
from tilewise.scale import pieces

sp = pytest.importorskip("scipy.sparse")


@pytest.fixture
def short(monkeypatch):
    """Pieces of a few thousand steps; what was run, piece by piece."""
    seen = []
    run = cpu.run
    monkeypatch.setattr(pieces, "piece_steps", lambda problem, machine: 20_000)
    monkeypatch.setattr(pieces, "FEWEST", 0)
    monkeypatch.setattr(product, "KINDS", {})  # a kind that is known has the length of its pieces
    monkeypatch.setattr(pieces, "DEEP", 16)
    monkeypatch.setattr(pieces, "WIDE", 32)
    monkeypatch.setattr(pieces, "TALL", 32)
    monkeypatch.setattr(pieces, "LEAST", 32)

    def seeing(plan, *arrays):
        seen.append(plan.problem.steps)
        return run(plan, *arrays)

    monkeypatch.setattr(cpu, "run", seeing)
    return seen


@pytest.mark.drawn(6)
@pytest.mark.parametrize("semiring", ["plus_times", "min_plus", "lor_land", "logaddexp_plus"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "bool"])
def test_any_dtype_and_algebra(short, semiring, dtype):
    if (semiring, dtype) in (("logaddexp_plus", "int32"), ("logaddexp_plus", "bool"), ("min_plus", "bool")):
        pytest.skip("refused")
    chance = random.Random(next_seed())
    m, k, n = (chance.randint(60, 200) for _ in range(3))
    M, N = values((m, k), dtype, 1), values((k, n), dtype, 2)
    if dtype == "int32":
        M, N = M % 1000, N % 1000  # min_plus refuses weights past half its range
    assert_product(tw.matmul(M, N, semiring=semiring), M, N, semiring)
    assert len(short) > 1
    assert max(short) < 20 * 20_000


@pytest.mark.parametrize("dtype", ["float32", "float16", "complex128"])
def test_a_symmetric_product_in_pieces(short, dtype):
    A = values((150, 90), dtype, 1)
    for M, N in ((A, A.T), (A.T, A)):
        P = tw.matmul(M, N)
        assert_product(P, M, N, "plus_times")
        assert (P == P.T).all()
    assert len(short) > 3
    assert sum(short) < 2 * 0.9 * (150 * 150 * 90 + 90 * 90 * 150) / 2  # pieces below the diagonal are mirrored


def test_stacks_args_and_accumulate(short):
    M, N = values((5, 1, 90, 80), "float64", 1), values((3, 80, 70), "float64", 2)
    assert_product(tw.matmul(M, N), M, N, "plus_times")
    D, arg = tw.matmul(M[0, 0], N[0], semiring="min_plus", return_arg=True)
    whole = M[0, 0][:, :, None] + N[0][None]
    np.testing.assert_array_equal(D, whole.min(1))
    np.testing.assert_array_equal(np.take_along_axis(whole, arg[:, None], 1)[:, 0], D)
    out = np.ones((90, 70))
    tw.matmul(M[0, 0], N[0], out=out, accumulate=True)
    np.testing.assert_allclose(out, 1 + M[0, 0] @ N[0])
    assert short


def test_pieces_of_real_products_are_short_and_few(monkeypatch):
    from tilewise.algebra.builtin import find_semiring
    from tilewise.algebra.dtypes import DTYPES
    from tilewise.core.problem import Problem, row_major
    from tilewise.dispatch.execute import machine_of

    machine, seen = machine_of("cpu"), []
    monkeypatch.setattr(cpu, "run", lambda plan, M, N, P, *_: seen.append(M.size * N.shape[1]))
    for shape in ((6000, 6000, 6000), (100, 2_000_003, 90), (200_000, 300, 40_000), (50, 40, 10**8)):
        m, k, n = shape
        kind = DTYPES["float32"]
        rows = row_major(m, k), row_major(k, n), row_major(m, n)
        problem = Problem(m, k, n, (), kind, kind, find_semiring("plus_times"), *rows)
        if pieces.is_long(problem, machine):
            seen.clear()
            made = (np.broadcast_to(np.float32(0), s) for s in ((m, k), (k, n), (m, n)))
            pieces.run_in_pieces(problem, machine, *made)
            assert sum(seen) == problem.steps
            most = pieces.piece_steps(problem, machine)
            assert max(seen) < 6 * most
            assert len(seen) < 40 * problem.steps / most


def interrupted(work, after):
    """Seconds from Ctrl-C to KeyboardInterrupt; None where the work was over first."""
    sent = []

    def send():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT) if os.name == "posix" else _thread.interrupt_main()

    timer = threading.Timer(after, send)
    timer.start()
    try:
        work()
        timer.cancel()
        timer.join()
        time.sleep(0.01)
    except KeyboardInterrupt:
        return time.monotonic() - sent[0]
    return None


def kinds_of_work(chance):
    """A call of each kind that takes seconds: products by dtype, algebra and keyword, what is made of products, and
    compiling; by functions that make its operands first."""
    rng = np.random.default_rng(chance.randrange(2**32))

    def drawn(n, dtype="float64"):
        return rng.random((n, n)).astype(dtype) if np.dtype(dtype).kind in "fc" else rng.integers(1, 9, (n, n), dtype)

    def stored(n, share):
        return sp.random_array((n, n), density=share, rng=rng, format="csr")

    big, few = partial(drawn, 4500, "float32"), partial(drawn, 1200)
    narrow, whole = partial(drawn, 5000, "float16"), partial(drawn, 4000, "int64")
    shift = float(chance.randint(1, 10**9))
    own = tw.Semiring("own", add=tw.maximum, mul=lambda x, y: x * y / (1 + x), zero=0)
    new = tw.Semiring("new", add=tw.minimum, mul=lambda x, y: x + y + shift, zero=np.inf)

    def counted():
        return few() + 1, np.ones((1200, 1200), np.int64)

    def signed(S):
        S = sp.triu(S, 1, format="csr")  # no cycles
        S.data -= 0.1
        return S

    def lists(n):
        return drawn(n), *[np.full((n, n), np.inf)] * 7

    chunks = np.arange(0, 4500, 45) + 45
    return {
        "product": lambda: partial(tw.matmul, big(), big()),
        "min_plus": lambda: partial(tw.matmul, big(), big(), semiring="min_plus"),
        "logaddexp": lambda: partial(tw.matmul, drawn(3000), drawn(3000), semiring="logaddexp_plus"),
        "own": lambda: partial(tw.matmul, drawn(3000), drawn(3000), semiring=own),
        "complex": lambda: partial(tw.matmul, drawn(2500, "complex128"), drawn(2500, "complex128")),
        "half": lambda: partial(tw.matmul, narrow(), narrow()),
        "int64": lambda: partial(tw.matmul, whole(), whole()),
        "modular": lambda: partial(tw.matmul, whole(), whole(), semiring=tw.modular(1000003)),
        "pinned": lambda: partial(tw.matmul, big(), big(), kernel="packed"),
        "bias": lambda: partial(tw.matmul, big(), big(), bias=np.ones(4500, np.float32), activation="gelu"),
        "arg": lambda: partial(tw.matmul, drawn(3000), drawn(3000), semiring="min_plus", return_arg=True),
        "out": lambda: partial(tw.matmul, big(), big(), out=np.zeros((4500, 4500), np.float32), accumulate=True),
        "memory": lambda: partial(tw.matmul, big(), big(), memory="100MB"),
        "stack": lambda: partial(tw.matmul, *[np.broadcast_to(few()[None], (60, 1200, 1200))] * 2, semiring="min_plus"),
        "counts": lambda: partial(tw.matmul, counted(), counted(), semiring="min_count"),
        "lists": lambda: partial(tw.matmul, lists(700), lists(700), semiring=tw.k_best(8)),
        "sparse": lambda: partial(tw.matmul, stored(20000, 0.01), stored(20000, 0.01), semiring="min_plus"),
        "sparse with dense": lambda: partial(
            tw.matmul, stored(20000, 0.01), rng.random((20000, 400)), semiring="min_plus"
        ),
        "einsum": lambda: partial(tw.einsum, "ij,jk,kl->il", *[drawn(2500)] * 3, semiring="max_plus"),
        "chain": lambda: partial(tw.chain, [drawn(2500)] * 4, semiring="max_plus"),
        "power": lambda: partial(tw.power, drawn(2500), 7, semiring="max_plus"),
        "many": lambda: partial(tw.matmul_many, [(drawn(900), drawn(900))] * 200),
        "groups": lambda: partial(tw.grouped_matmul, big(), np.broadcast_to(big(), (100, 4500, 4500)), chunks),
        "scattered": lambda: partial(tw.scatter_rows, np.repeat(big(), 5, 0), rng.integers(0, 9, 22_500), 9),
        "blocks": lambda: partial(tw.block_sparse_matmul, big(), big(), np.tri(10, 10, dtype=bool)),
        "closure": lambda: partial(tw.closure, drawn(2000)),
        "closure with paths": lambda: partial(tw.closure, drawn(1500), return_predecessors=True),
        "closure of a stack": lambda: partial(tw.closure, np.broadcast_to(few()[None], (9, 1200, 1200))),
        "closure of sums": lambda: partial(tw.closure, drawn(2000) / 2500, semiring="plus_times"),
        "closure of logarithms": lambda: partial(tw.closure, np.log(drawn(1500) / 2500), semiring="logaddexp_plus"),
        "closure of counts": lambda: partial(tw.closure, counted(), semiring="min_count"),
        "closure of lists": lambda: partial(tw.closure, lists(1000), semiring=tw.k_best(8)),
        "searches": lambda: partial(tw.closure, stored(20000, 0.005), sources=np.arange(3000)),
        "label-correcting": lambda: partial(tw.closure, signed(stored(20000, 0.002)), sources=np.arange(999)),
        "sparse closure": lambda: partial(tw.closure, stored(3000, 0.01)),
        "compile": lambda: partial(tw.matmul, drawn(70), drawn(70), semiring=new),
    }  # fmt: skip


def ctrl_c(count, *names):
    """The longest time to KeyboardInterrupt of each kind of work, of all or of some, over so many interruptions."""
    seed = next_seed() % 10**9
    chance = random.Random(seed)
    print("seed", seed)
    small = values((70, 60), "float64", 1)
    right = small @ small.T
    worst, landed = {}, 0
    while landed < count:
        works = kinds_of_work(chance)
        name = chance.choice(names or list(works))
        try:
            took = interrupted(works[name](), chance.random() * (0.1 if name == "compile" else 0.6))
        except KeyboardInterrupt:
            took = 0.0  # it came between two lines of this test
        if took is not None:
            landed += 1
            worst[name] = max(worst.get(name, 0.0), took)
        np.testing.assert_allclose(tw.matmul(small, small.T), right)
    return worst


@pytest.fixture
def default_sigint():
    """SIGINT with Python's handler: processes of a shell's background job inherit that it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_is_handled_and_the_next_call_is_right(default_sigint):
    worst = ctrl_c(3, "product", "min_plus", "pinned", "compile")  # the others take longer to make
    print(worst)
    assert max(worst.values()) < 5.0  # the machine of the tests may be busy; 200 and 0.5 s are the marked test's


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*unclosed file.*")  # Python's own, of a module whose import was interrupted
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_200_times(default_sigint):
    worst = ctrl_c(200)
    print({name: f"{seconds:.2f} s" for name, seconds in worst.items()})
    assert max(worst.values()) < (0.5 if os.getloadavg()[0] < os.cpu_count() else 5.0)

"""einsum against NumPy's, and over other semirings against all terms broadcast and reduced."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tilewise as tw
from seeds import next_seed, sample_size
from tilewise.dispatch.prepared import PREPARED
from tilewise.functions.contraction.replay import REPLAYS, Record, signature
from tilewise.functions.contraction.views import reshaped

LABELS = "abcdefg"


def random_expression(rng):
    """Terms and shapes: one to four operands, repeated labels, sizes of 1, an output of any labels in any order."""
    sizes = {label: int(rng.integers(1, 5)) for label in LABELS}
    terms = ["".join(rng.choice(list(LABELS), int(rng.integers(1, 4)))) for _ in range(int(rng.integers(1, 5)))]
    shapes = []
    for own_labels in terms:
        own = {c: 1 if rng.random() < 0.1 else sizes[c] for c in own_labels}
        shapes.append(tuple(own[c] for c in own_labels))
    used = sorted(set("".join(terms)))
    output = "".join(rng.permutation(used)[: int(rng.integers(0, len(used) + 1))])
    return ",".join(terms) + ("->" + output if rng.random() < 0.85 else ""), shapes


def full_sizes(terms, shapes):
    sizes = {}
    for own_labels, shape in zip(terms, shapes, strict=True):
        for c, size in zip(own_labels, shape, strict=True):
            sizes[c] = max(sizes.get(c, 1), size)
    return sizes


def brute_force(subscripts, operands, mul, reduce):
    """All terms, broadcast over all labels, then reduced."""
    inputs, _, output = subscripts.partition("->")
    terms = inputs.split(",")
    if "->" not in subscripts:
        output = "".join(c for c in sorted(set(inputs) - {","}) if inputs.count(c) == 1)
    labels = sorted(set("".join(terms)))
    sizes = full_sizes(terms, [x.shape for x in operands])
    total = None
    for own_labels, x in zip(terms, operands, strict=True):
        index = np.ix_(*[np.arange(sizes[c]) for c in labels])
        at = tuple(index[labels.index(c)] % size for c, size in zip(own_labels, x.shape, strict=True))
        term = np.broadcast_to(x[at], [sizes[c] for c in labels])
        total = term if total is None else mul(total, term)
    gone = tuple(i for i, c in enumerate(labels) if c not in output)
    kept = [c for c in labels if c in output]
    return reduce(total, gone).transpose([kept.index(c) for c in output])


def test_random_expressions_are_numpys():
    seed = next_seed() % 2**32
    print("seed", seed)
    rng = np.random.default_rng(seed)
    for _ in range(sample_size(200)):
        subscripts, shapes = random_expression(rng)
        operands = [rng.standard_normal(s) for s in shapes]
        operands = [x.T.copy().T if rng.random() < 0.5 else x for x in operands]
        try:
            expected = np.einsum(subscripts, *operands, optimize=True)
        except ValueError:  # NumPy wants repeated labels of one operand to be of one size
            continue
        made = tw.einsum(subscripts, *operands)
        assert made.shape == expected.shape, subscripts
        np.testing.assert_allclose(made, expected, rtol=1e-9, atol=1e-9, err_msg=subscripts)


REDUCE = {
    "min_plus": (np.add, np.min),
    "max_plus": (np.add, np.max),
    "max_min": (np.minimum, np.max),
    "min_max": (np.maximum, np.min),
    "max_times": (np.multiply, np.max),
    "logaddexp_plus": (np.add, lambda x, axes: np.log(np.exp(x).sum(axes))),
}


@pytest.mark.parametrize("semiring", REDUCE)
def test_random_expressions_over_other_semirings(semiring):
    seed = next_seed() % 2**32
    print("seed", seed)
    rng = np.random.default_rng(seed)
    mul, reduce = REDUCE[semiring]
    for _ in range(40):
        subscripts, shapes = random_expression(rng)
        operands = [rng.random(s) for s in shapes]
        inputs = subscripts.partition("->")[0].split(",")
        if any(
            len({s for d, s in zip(w, x, strict=True) if d == c}) > 1
            for w, x in zip(inputs, shapes, strict=True)
            for c in w
        ):
            continue
        expected = brute_force(subscripts, operands, mul, reduce)
        np.testing.assert_allclose(tw.einsum(subscripts, *operands, semiring=semiring), expected, err_msg=subscripts)


@pytest.mark.parametrize("subscripts", ["...ij,...jk->...ik", "b...i,b...i->b...", "...ij->...ji", "ij...,jk->ik..."])
def test_an_ellipsis(subscripts):
    rng = np.random.default_rng(0)
    shapes = {"...ij": (2, 3, 4, 5), "...jk": (3, 5, 6), "b...i": (2, 3, 4), "ij...": (4, 5, 2), "jk": (5, 6)}
    operands = [rng.random(shapes[own_labels]) for own_labels in subscripts.partition("->")[0].split(",")]
    np.testing.assert_allclose(tw.einsum(subscripts, *operands), np.einsum(subscripts, *operands))


def test_other_dtypes():
    rng = np.random.default_rng(0)
    for dtype in ("int64", "float32", "complex128", "bool"):
        A, B, C = (rng.integers(0, 3, s).astype(dtype) for s in ((4, 5), (5, 6), (6, 3)))
        made = tw.einsum("ij,jk,kl->il", A, B, C)
        assert made.dtype == dtype
        np.testing.assert_allclose(made, np.matmul(np.matmul(A, B), C))
    reach = rng.random((5, 5)) < 0.3
    np.testing.assert_array_equal(
        tw.einsum("ij,jk,kl->il", reach, reach, reach, semiring="lor_land"),
        np.linalg.matrix_power(reach.astype(int), 3) > 0,
    )


def test_transposed_operands_are_read_in_place(monkeypatch):
    from tilewise.functions.contraction import einsum as module

    seen = []
    multiply = module.matmul
    monkeypatch.setattr(module, "matmul", lambda M, N, **how: seen.append((M, N)) or multiply(M, N, **how))
    A, B = np.random.default_rng(0).random((2, 30, 40)), np.random.default_rng(1).random((50, 40))
    tw.einsum("bij,kj->bki", A, B)
    ((M, N),) = seen
    assert np.shares_memory(M, A)
    assert np.shares_memory(N, B)


@pytest.mark.parametrize(
    ("subscripts", "shapes", "message"),
    [
        ("ij,jk->ik", [(2, 3), (4, 5)], "'j' is 3 in operand 1 and 4 in operand 2"),
        ("ij,jk->ik", [(2, 3)], "names 2 operands and 1 were given"),
        ("ij,jk->ix", [(2, 3), (3, 4)], "'x'"),
        ("ij->ii", [(2, 2)], "'i' appeared more than once in the output"),
        ("ijk,jk->ik", [(2, 3), (3, 4)], "operand 1|operand 0"),
    ],
)
def test_what_does_not_fit_is_refused(subscripts, shapes, message):
    with pytest.raises(ValueError, match=message):
        tw.einsum(subscripts, *(np.ones(s) for s in shapes))


def test_a_mul_that_does_not_distribute_is_refused_for_more_than_two():
    A = np.array([[1.0, -2.0], [3.0, 4.0]])
    with pytest.raises(tw.UsageError, match="max_times regroups values that are not below 0 only"):
        tw.einsum("ij,jk,kl->il", A, A, A, semiring="max_times")
    tw.einsum("ij,jk->ik", A, A, semiring="max_times")
    distance = tw.Semiring(
        "distance", add=lambda x, y: x + y, mul=lambda x, y: tw.absolute(x - y), zero=0, pad_m=0, pad_n=0
    )
    with pytest.raises(tw.UsageError, match=r"distance multiplies two operands only: more need mul\(mul\(x, y\), z\)"):
        tw.einsum("ij,jk,kl->il", A, A, A, semiring=distance)


class TestChainAndPower:
    def test_a_chain_is_multi_dots(self):
        rng = np.random.default_rng(next_seed() % 2**32)
        for _ in range(30):
            dims = rng.integers(1, 9, int(rng.integers(3, 7)))
            matrices = [rng.random((m, n)) for m, n in itertools.pairwise(dims)]
            if rng.random() < 0.3:
                matrices[0] = matrices[0][0]
            if rng.random() < 0.3:
                matrices[-1] = matrices[-1][:, 0]
            np.testing.assert_allclose(tw.chain(matrices), np.linalg.multi_dot(matrices))

    def test_it_takes_the_cheapest_order(self, monkeypatch):
        from tilewise.functions.contraction import chain as module

        steps = []
        multiply = module.matmul
        monkeypatch.setattr(
            module,
            "matmul",
            lambda M, N, **how: steps.append(M.shape[0] * M.shape[1] * N.shape[1]) or multiply(M, N, **how),
        )
        tw.chain([np.ones(s) for s in ((10, 100), (100, 5), (5, 50))])
        assert sum(steps) == 7500

    def test_over_another_semiring(self):
        rng = np.random.default_rng(0)
        A, B, C = rng.random((3, 4)), rng.random((4, 5)), rng.random((5, 2))
        expected = (A[:, :, None, None] + B[None, :, :, None] + C).min((1, 2))
        np.testing.assert_allclose(tw.chain([A, B, C], semiring="min_plus"), expected)

    def test_chains_that_do_not_fit_are_refused(self):
        with pytest.raises(tw.ShapeError, match="operand 2 of the chain has 4 rows, and the one before it 3 columns"):
            tw.chain([np.ones((2, 3)), np.ones((4, 5))])
        with pytest.raises(tw.UsageError, match="n=-1 must be a whole number"):
            tw.power(np.eye(2), -1)

    @pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 16])
    def test_power(self, n):
        A = np.random.default_rng(n).integers(0, 3, (2, 4, 4))
        np.testing.assert_array_equal(tw.power(A, n), np.linalg.matrix_power(A, n))
        W = np.random.default_rng(n).random((5, 5))
        expected = np.where(np.eye(5), 0, np.inf)
        for _ in range(n):
            expected = (expected[:, :, None] + W).min(1)
        np.testing.assert_allclose(tw.power(W, n, semiring="min_plus"), expected)

    def test_a_product_of_one_is_of_the_semiring_too(self):
        A = np.array([[100, -3], [0, 97]])
        for made in (tw.power(A, 1, semiring=tw.modular(97)), tw.chain([A], semiring=tw.modular(97))):
            np.testing.assert_array_equal(made, A % 97)
        for kind in (np.int8, np.float32, bool):
            held = A.astype(kind)
            for made in (tw.power(held, 1, semiring="lor_land"), tw.chain([held], semiring="lor_land")):
                assert made.dtype == bool
                np.testing.assert_array_equal(made, held != 0)
        wide = np.array([[0, 2, 0]])
        np.testing.assert_array_equal(tw.chain([wide], semiring="lor_land"), wide != 0)
        assert tw.power(A, 1) is A
        np.testing.assert_array_equal(tw.power(A, 0, semiring=tw.modular(2)), np.eye(2))

    def test_matvec(self):
        A, x = np.random.default_rng(0).random((2, 3, 4)), np.random.default_rng(1).random((5, 1, 4))
        np.testing.assert_allclose(tw.matvec(A, x), np.einsum("bij,cbj->cbi", A, np.broadcast_to(x, (5, 2, 4))))


def test_a_repeated_call_is_replayed_on_other_arrays(monkeypatch):
    import tilewise.functions.contraction.einsum as module

    seed = next_seed() % 2**32
    print("seed", seed)
    rng = np.random.default_rng(seed)
    replayed = 0
    for semiring in ("plus_times", "min_plus"):
        for _ in range(60):
            subscripts, shapes = random_expression(rng)
            first, second = ([rng.random(s) for s in shapes] for _ in range(2))
            try:
                tw.einsum(subscripts, *first, semiring=semiring)
            except tw.ShapeError:
                continue
            with monkeypatch.context() as never:
                never.setattr(module, "contraction_of", lambda *_: pytest.fail("it was planned again"))
                made = tw.einsum(subscripts, *second, semiring=semiring)
            module.REPLAYS.clear()
            np.testing.assert_array_equal(made, tw.einsum(subscripts, *second, semiring=semiring), err_msg=subscripts)
            replayed += 1
    assert replayed > 60


def test_what_depends_on_the_values_is_looked_at_each_time():
    A, B = np.ones((2, 3, 3))
    assert tw.einsum("ij,jk,kl->il", A, B, A, semiring="max_times")[0, 0] == 1
    with pytest.raises(tw.UsageError, match="not below 0 only"):
        tw.einsum("ij,jk,kl->il", A, -B, A, semiring="max_times")


@pytest.mark.drawn(5)
@pytest.mark.parametrize("subscripts", ["bi,bi->b", "i,i->", "ij,kj->ik", "ij,kj->ki", "bij,kj->bki", "bi,bj->bij"])
@pytest.mark.parametrize("semiring", ["plus_times", "min_plus"])
def test_a_call_of_a_known_signature_takes_any_arrays(subscripts, semiring):
    """They may be one array, or foreign memory, whose size is checked at every call; integers have an absent edge."""
    rng = np.random.default_rng(next_seed())
    sizes = {"b": 7, "i": 5, "j": 9, "k": 5}
    left, right = (tuple(sizes[c] for c in term) for term in subscripts.partition("->")[0].split(","))
    for dtype in ("float64", "int32"):
        for number in range(4):
            x, y = rng.integers(0, 9, left).astype(dtype), rng.integers(0, 9, right).astype(dtype)
            if semiring == "min_plus" and dtype == "int32" and number:
                x[..., 1] = np.iinfo(np.int32).max  # no edge
            if number == 2:
                x, y = (np.frombuffer(v.tobytes(), dtype).reshape(v.shape) for v in (x, y))
            y = x if number == 3 and left == right else y
            made = tw.einsum(subscripts, x, y, semiring=semiring)
            expected = np.einsum(subscripts, x, y)
            if semiring == "min_plus":
                expected = _min_plus(subscripts, x, y)
            np.testing.assert_array_equal(made, expected)
            assert made is not x
            assert type(made) is type(expected)


def _min_plus(subscripts, x, y):
    """One cell at a time."""
    terms, _, output = subscripts.partition("->")
    left, right = terms.split(",")
    sizes = dict(zip(left + right, x.shape + y.shape, strict=True))
    made = np.full([sizes[c] for c in output], np.iinfo(np.int32).max, x.dtype)
    for at in np.ndindex(*sizes.values()):
        place = dict(zip(sizes, at, strict=True))
        cell = tuple(place[c] for c in output)
        terms = x[tuple(place[c] for c in left)], y[tuple(place[c] for c in right)]
        if max(terms) < np.iinfo(np.int32).max:
            made[cell] = min(made[cell], sum(terms))
    return made[()]


def test_a_replay_of_one_product_makes_no_views():
    x, y = np.ones((7, 5)), np.ones((7, 5))
    record = Record([x, y])
    M, N = record.do(reshaped, x, (7, 1, 5)), record.do(reshaped, y, (7, 5, 1))
    P = record.multiply(tw.matmul, M, N, {})
    again = record.replay(record.do(reshaped, P, (7,)))
    assert not any(type(cell.cell_contents) is np.ndarray for cell in again.__closure__)
    in_place = dict(zip(again.__code__.co_freevars, again.__closure__, strict=True))["in_place"].cell_contents
    np.testing.assert_array_equal(in_place(2 * x, y, {}), np.full(7, 10.0))


def test_a_replay_holds_the_job_of_its_product():
    x, y = np.ones((70, 5)), np.ones((70, 5))
    tw.einsum("bi,bi->b", x, y)
    key = signature("bi,bi->b", (x, y), "plus_times", "auto")
    held = dict(zip(REPLAYS[key].__code__.co_freevars, REPLAYS[key].__closure__, strict=True))["in_place"].cell_contents
    assert isinstance(held._ready.template, bytes)
    PREPARED.clear()
    np.testing.assert_array_equal(tw.einsum("bi,bi->b", x, 2 * y), np.full(70, 10.0))


@pytest.mark.parametrize("subscripts", ["ij->ji", "ii->i", "ij->", "ij->ij"])
def test_values_of_one_operand_become_truth_values_or_remainders(subscripts):
    A = np.array([[0, 97, 5], [100, 7, 0], [194, 0, 1]])
    assert_same = np.testing.assert_array_equal
    for _ in range(2):
        truth = tw.einsum(subscripts, A, semiring="lor_land")
        assert truth.dtype == bool
        assert_same(truth, np.einsum(subscripts, (A != 0).astype(int)) > 0)
        assert_same(tw.einsum(subscripts, A, semiring=tw.modular(97)), np.einsum(subscripts, A) % 97)

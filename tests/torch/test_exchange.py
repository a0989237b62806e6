"""Tensors that machine code reads: keys are equal where they should be, and whatever torch follows goes by Python."""

from __future__ import annotations

import ctypes
import random
from types import SimpleNamespace

import pytest
import torch

import tilewise as tw
from seeds import next_seed
from tilewise.arrays import torch_exchange, torch_quick_signature
from tilewise.arrays.keyword_codes import VALUES
from tilewise.arrays.torch_exchange import CPU, CUDA, UNREAD, exchange_functions, tensor_launcher
from tilewise.arrays.torch_quick_signature import quickest_signature, wants_gradient
from tilewise.dispatch.prepared import OnTensors

pytestmark = pytest.mark.skipif(exchange_functions() is None, reason="no table of functions, or nothing native")
BY_PYTHON = ("by Python",)
DTYPES = [torch.float32, torch.bfloat16, torch.float16, torch.int32, torch.uint8, torch.float8_e4m3fn, torch.bool]


def by_python(M, N, keywords):
    return BY_PYTHON


def sign(M, N, keywords=None):
    return quickest_signature(by_python, CPU)(M, N, keywords or {})


def drawn(rng):
    """A view of some memory: shifted, transposed, stepped, of one to five axes, of every dtype."""
    shape = tuple(rng.randrange(1, 5) for _ in range(rng.choice([1, 2, 2, 2, 3, 4, 5])))
    whole = torch.zeros([2 * extent + 1 for extent in shape]).to(rng.choice(DTYPES))
    view = whole[tuple(slice(rng.randrange(2), None, rng.choice([1, 1, 2])) for _ in shape)]
    return view.mT if view.dim() > 1 and rng.random() < 0.3 else view


def described(x):
    return (tuple(x.shape), x.stride(), x.dtype, x.data_ptr() & 15)


def test_keys_are_equal_where_they_should_be_and_only_there():
    seed = next_seed() % 2**32
    rng, by_key, by_description = random.Random(seed), {}, {}
    for _ in range(4000):
        tensors = [drawn(rng) for _ in range(rng.choice([2, 3]))]
        key = sign(*tensors[:2], {"out": tensors[2]} if len(tensors) == 3 else {})
        unit = all(any(n > 1 and s == 1 for n, s in zip(x.shape, x.stride(), strict=True)) for x in tensors)
        assert (key is BY_PYTHON) == (not unit or any(x.dim() > 4 for x in tensors)), f"seed {seed}"
        if key is not BY_PYTHON:
            description = tuple(map(described, tensors))
            assert by_key.setdefault(key, description) == description, f"seed {seed}"
            assert by_description.setdefault(description, key) == key, f"seed {seed}"
    assert len(by_key) > 100


class Wrapped(torch.Tensor):
    pass


@pytest.mark.filterwarnings("ignore:.*(beta|prototype).*:UserWarning")
def test_tensors_that_the_table_does_not_describe_are_signed_by_python():
    A = torch.ones(4, 4)
    strange = [
        A.to_sparse(), A.to_sparse_csr(), A.as_subclass(Wrapped), A.to("meta"), torch.empty(0, 4), [[1.0]], None,
        torch.view_as_complex(torch.ones(4, 4, 2)).conj().imag, torch.nested.nested_tensor([A, A]), A[::2, ::2],
    ]  # fmt: skip
    for x in strange:
        assert sign(A, x) is BY_PYTHON
        assert sign(A, A, {"out": x}) is BY_PYTHON
    assert sign(A, A) is not BY_PYTHON


def test_keywords_of_few_values_are_signed_and_no_others():
    A, B = torch.ones(4, 4), torch.ones(4, 4)
    seed = next_seed() % 2**32
    rng, by_key = random.Random(seed), {}
    for _ in range(2000):
        given = {name: rng.choice(values) for name, values in VALUES.items() if rng.random() < 0.4}
        given |= {"out": B} if rng.random() < 0.5 else {}
        key = sign(A, A, dict(rng.sample(sorted(given.items(), key=str), len(given))))  # in any order
        assert key is not BY_PYTHON, f"seed {seed}: {given}"
        texts = frozenset((name, str(value)) for name, value in given.items())
        assert by_key.setdefault(key, texts) == texts, f"seed {seed}"
        assert not wants_gradient(key)
    assert len(by_key) > 300
    others = [
        {"kernel": "plain"}, {"semiring": "2_best"}, {"semiring": "min_count"}, {"semiring": "nothing"},
        {"precision": "".join(["hi", "gh"])}, {"precision": None}, {"out": None}, {"out": B, "bias": B},
        {"accumulate": 1}, {"unknown": True}, {"out": B, "precision": "high", "tile": 16},
    ]  # fmt: skip
    for given in others:
        assert sign(A, A, given) is BY_PYTHON, given
    wanted = torch.ones(4, 4, requires_grad=True)
    assert sign(wanted, A, {"precision": "high"}) is BY_PYTHON
    assert sign(A, A, {"out": wanted, "precision": "high"}) is BY_PYTHON
    with torch.autocast("cpu"):
        assert sign(A, A, {"precision": "high"}) is BY_PYTHON


def test_calls_with_other_keywords_have_other_keys():
    """Prepared under one keyword, never served to another: each against NumPy, in any order, twice and thrice."""
    seed = next_seed() % 2**32
    rng = random.Random(seed)
    M, N = torch.randint(0, 9, (5, 7)).float(), torch.randint(0, 9, (7, 6)).float()
    steps = M[:, :, None], N[None]
    exact = {
        "plus_times": (M @ N, torch.add), "min_plus": ((steps[0] + steps[1]).amin(1), torch.minimum),
        "tropical": ((steps[0] + steps[1]).amin(1), torch.minimum),
        "max_times": ((steps[0] * steps[1]).amax(1), torch.maximum),
        "max_min": (torch.minimum(*steps).amax(1), torch.maximum),
    }  # fmt: skip
    for _ in range(300):
        name, given = rng.choice([*exact]), {}
        product, add = exact[name]
        if name != "plus_times" or rng.random() < 0.5:
            given["semiring"] = name
        if rng.random() < 0.4:
            given["precision"] = rng.choice(["ieee", "high", "tf32"])
        if rng.random() < 0.4:
            given["nonnegative"] = rng.choice([True, False])
        if rng.random() < 0.6:
            given["out"] = out = torch.full((5, 6), float(rng.randrange(40)))
            if rng.random() < 0.6:
                given["accumulate"] = rng.choice([True, False])
                product = add(product, out) if given["accumulate"] else product
        assert torch.equal(tw.matmul(M, N, **given), product), f"seed {seed}: {given}"


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_what_torch_follows_goes_by_python():
    from torch.utils._python_dispatch import TorchDispatchMode

    class Counting(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            return function(*args, **(kwargs or {}))

    A, answers = torch.ones(4, 4), []

    def signed(x):
        answers.append(sign(A, A) is BY_PYTHON)
        return x

    weight = torch.nn.Parameter(torch.ones(4, 4))
    assert sign(A, weight) not in (BY_PYTHON, sign(A, A)), "marked: its gradient is wanted"
    assert sign(A, weight) == sign(weight, A)
    assert wants_gradient(sign(A, weight))
    assert not wants_gradient(sign(A, A))
    assert sign(A, A, {"out": weight}) is BY_PYTHON
    assert sign(A, weight, {"out": A}) is BY_PYTHON
    with torch.no_grad():
        assert sign(A, weight) == sign(A, A)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert sign(A, A) is BY_PYTHON
        assert sign(A, weight) is BY_PYTHON
        assert sign(A, A, {"out": A}) is not BY_PYTHON, "as torch's own products into out="
    with Counting():
        signed(A)
    torch.func.vmap(signed)(A)
    torch.jit.trace(signed, (A,), check_trace=False)
    with torch.autograd.forward_ad.dual_level():
        signed(A)
    assert len(answers) == 4
    assert all(answers)
    assert sign(A, A) is not BY_PYTHON


def test_an_error_inside_is_none_of_the_callers():
    """What the table refuses leaves no exception behind."""
    A, broken = torch.ones(4, 4), torch.ones(4, 4).to_sparse()
    for _ in range(3):
        assert sign(broken, A) is BY_PYTHON
    assert sign(A, A) == sign(A.clone(), A)


def test_addresses_and_arguments_arrive_at_the_launch():
    seen = []

    @ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 6)
    def fill(*arguments):
        seen.append(arguments)
        return 41 << 32

    launch = tensor_launcher(ctypes.cast(fill, ctypes.c_void_p).value)
    M, N, P = torch.ones(3, 4)[:, 1:], torch.ones(3, 2, dtype=torch.int8), torch.ones(5)
    assert launch(77, M, N, P, 1 << 40) == 41 << 32
    assert seen == [(77, M.data_ptr(), N.data_ptr(), P.data_ptr(), 1 << 40, 0)]
    gone = torch.ones(4, 4)
    gone.untyped_storage().resize_(0)
    assert launch(77, M, gone, P, 0) == UNREAD
    assert len(seen) == 1
    with pytest.raises(TypeError):
        launch(77, M, N, P)
    with pytest.raises((RuntimeError, BufferError, TypeError)):
        launch(77, M, N.to_sparse(), P, 0)


def test_without_a_table_python_signs(monkeypatch):
    for room in (torch_exchange, torch_quick_signature):
        monkeypatch.setattr(room, "exchange_functions", lambda: None)
    assert torch_quick_signature._quickest_signature.__wrapped__(by_python, CUDA) is by_python
    assert tensor_launcher.__wrapped__(1) is None


def test_a_prepared_call_reads_its_tensors_takes_scratch_and_falls_back():
    answers, seen, scratch, otherwise = [0], [], [], []

    @ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 6)
    def fill(*arguments):
        seen.append(arguments)
        return answers[-1]

    class Library:
        stream = staticmethod(lambda: 5)
        take = staticmethod(lambda nbytes, stream: scratch.append((nbytes, stream)) or 1 << 30)
        give_back = staticmethod(scratch.append)

    class StepByStep:
        empty = staticmethod(lambda: torch.empty(4, 4))

        def __call__(self, M, N, keywords):
            otherwise.append(keywords["out"])
            return

    M, N, P = (torch.ones(4, 4) for _ in range(3))
    launch = tensor_launcher(ctypes.cast(fill, ctypes.c_void_p).value)
    for nbytes in (0, 512):
        launcher = SimpleNamespace(header=77, scratch_bytes=nbytes)
        call = OnTensors(StepByStep(), launcher, launch, Library())
        made = call(M, N, {})
        assert made is not P
        assert call(M, N, {"out": P}) is P
        at = 1 << 30 if nbytes else 0
        arguments = [(77, M.data_ptr(), N.data_ptr(), x.data_ptr(), at, 0) for x in (made, P)]
        assert seen[-2:] == arguments
        assert scratch == ([(512, 5), at] * 2 if nbytes else [])
        answers.append(-1)  # P shares memory with M or N
        assert call(M, N, {"out": P}) is None
        assert otherwise.pop() is P
        answers.append(0)
        scratch.clear()

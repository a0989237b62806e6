"""Random stacks on the card, among poison: every way of `wgmma_half`, and whatever the planner chooses."""

from __future__ import annotations

import math
import random
from functools import partial

import pytest

import tilewise as tw
from seeds import next_seed
from tilewise.core.options import Options
from tilewise.dispatch.bind import bind
from tilewise.dispatch.execute import machine_of
from tilewise.kernels.registry import family_of
from tilewise.kernels.wgmma_gemm.wgmma_half.model import configs
from tilewise.planning.launchers import launcher_of

torch = pytest.importorskip("torch")


def poisoned(shape, stack, dtype, transposed, extra, apart):
    """A stack in memory that is NaN between its lines (`extra` longer; None: up to 16 bytes) and its members."""
    rows, cols = shape[::-1] if transposed else shape
    extra = -cols % 8 if extra is None else extra
    each = -(-rows * (cols + extra) // 8) * 8 + apart
    memory = torch.full((math.prod(stack) * each + 8,), math.nan, dtype=dtype, device="cuda")
    steps = [each * math.prod(stack[i + 1 :]) for i in range(len(stack))]
    made = torch.as_strided(memory, (*stack, rows, cols), [*steps, cols + extra, 1])
    made.copy_(torch.randint(-3, 4, made.shape, device="cuda").to(dtype))
    return (made.mT if transposed else made), memory


def drawn(rng, dtypes):
    """M, N, P and the memory around P."""
    dtype = rng.choice(dtypes)
    stack = tuple(rng.randint(1, 5) for _ in range(rng.choice([1, 1, 2, 3])))
    stack = (rng.randint(20, 200),) if rng.random() < 0.2 else stack
    top = 700 if math.prod(stack) < 30 else 200
    m, k, n = (round(math.exp(rng.uniform(0, math.log(top)))) for _ in range(3))
    operands = []
    for sides in ((m, k), (k, n)):
        own = tuple(1 if rng.random() < 0.25 else extent for extent in stack)
        some = rng.random() < 0.5, rng.choice([None, None, 0, 3]), rng.choice([0, 8, 8, 5])
        operands.append(poisoned(sides, own, dtype, *some)[0].expand(*stack, *sides))
    P, memory = poisoned((m, n), stack, dtype, False, rng.choice([None, None, 0, 3]), rng.choice([0, 8, 5]))
    return (*operands, P, memory)


def check(multiply, M, N, P, memory, words):
    before, wanted = memory.clone(), M.double() @ N.double()
    multiply()
    torch.cuda.synchronize()
    assert (P.double() - wanted).abs().max() <= 0.5 + 8e-3 * wanted.abs().max(), words
    P.zero_()
    after = memory.clone()
    memory.copy_(before)
    P.zero_()
    assert torch.equal(after.view(torch.int16), memory.view(torch.int16)), f"{words}: something was written beside P"


@pytest.mark.parametrize("number", range(6))
def test_every_config_of_the_tensor_cores(number):
    seed = next_seed() + number
    rng, machine = random.Random(seed), machine_of("cuda:0")
    for _ in range(8):
        M, N, P, memory = drawn(rng, (torch.bfloat16, torch.float16))
        problem = bind(M, N, Options(out=P)).problem
        plan = family_of("wgmma_half").pinned(problem, machine, rng.choice(configs(problem, machine)))
        launcher = launcher_of(plan, "cuda:0")
        scratch = torch.full((max(1, launcher.scratch_bytes),), 255, dtype=torch.uint8, device="cuda")
        places = {"M": M, "N": N, "P": P, "scratch": scratch}
        given = {name: x.data_ptr() for name, x in places.items()}
        stream = torch.cuda.current_stream().cuda_stream
        check(partial(launcher, stream, **given), M, N, P, memory, f"{seed} {plan.config}")


HALVES = torch.bfloat16, torch.float16
OWN_DTYPES = {
    "buffered": (torch.float32,), "sliced_k": (torch.float32, torch.float64), "bulk_lines": HALVES,
}  # fmt: skip


@pytest.mark.parametrize("name", ["buffered", "rank_k", "bulk_lines", "sliced_k"])
def test_every_config_of_the_stacks_own_kernels(name):
    seed = next_seed()
    rng, machine, family = random.Random(seed), machine_of("cuda:0"), family_of(name)
    for _ in range(24):
        M, N, P, memory = drawn(rng, OWN_DTYPES.get(name, (torch.bfloat16, torch.float32)))
        problem = bind(M, N, Options(out=P)).problem
        if family.refusal(problem, machine):
            continue
        plan = family.pinned(problem, machine, rng.choice(list(family.configurations(problem, machine))))
        launcher = launcher_of(plan, "cuda:0")
        given = {"M": M.data_ptr(), "N": N.data_ptr(), "P": P.data_ptr(), "scratch": 0}
        stream = torch.cuda.current_stream().cuda_stream
        check(partial(launcher, stream, **given), M, N, P, memory, f"{seed} {plan.problem} {plan.config}")


@pytest.mark.parametrize("number", range(6))
def test_whatever_is_chosen(number):
    seed = next_seed() + number
    rng = random.Random(seed)
    for _ in range(10):
        M, N, P, memory = drawn(rng, (torch.bfloat16, torch.float32, torch.float64))
        check(lambda M=M, N=N, P=P: tw.matmul(M, N, out=P), M, N, P, memory, f"seed {seed}: {tw.plan(M, N)!r}")


def test_same_bits_each_time():
    M, N = (torch.randn(7, 301, 299, device="cuda").bfloat16() for _ in range(2))
    first = tw.matmul(M, N.mT)
    assert all(torch.equal(tw.matmul(M, N.mT), first) for _ in range(5))

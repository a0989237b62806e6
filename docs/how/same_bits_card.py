"""`reproducible=` on a card: GPU times beside the default and torch.mm, for same-bits.md.

`python docs/how/same_bits_card.py [everywhere|batch|rows|gpt|gpt-compiled]`: the first two by default. Times are those
of CUDA graphs; below 256 rows the weights of `batch` are several, one after the other, so that they do not stay in L2.
`rows` takes parts of the same rows, a million in all, and compares their bits; some lie misaligned, column-major or
apart. `gpt` compares a GPT-2's logits for a sequence alone and in a batch, and times it as it is and patched.
"""

import math
import random
import sys
import time
from dataclasses import replace
from functools import partial

import torch

import tilewise as tw

LARGE = (
    (2048, 2048, 2048), (4096, 4096, 4096), (8192, 2048, 8192), (4096, 512, 4096), (4096, 16384, 4096),
    (4097, 4097, 4097), (3000, 1000, 5000), (2816, 3072, 3072), (1536, 8192, 2816),
)  # fmt: skip
WEIGHTS = (
    (4096, 4096), (4096, 14336), (14336, 4096), (8192, 8192), (5120, 13824), (4096, 1024), (3584, 18944), (4097, 4097),
)  # fmt: skip
ROWS = (1, 2, 7, 16, 33, 64, 128, 256, 1000, 4096)
IN_L2 = 3e8  # bytes of weights, one after the other
KINDS = (
    ("bfloat16", "high"), ("float8_e4m3fn", "high"), ("float16", "high"), ("int8", "high"), ("float32", "tf32"),
    ("float32", "high"),
)  # fmt: skip
SEED = int(time.time())
FULL = 2  # kinds that are measured with all weights, the others with every third


def randoms(rows, cols, dtype):
    made = torch.randn(rows, cols, device="cuda")
    return (made * 30 if dtype == torch.int8 else made).to(dtype)


def compile_plans(plans):
    """Their kernels, by all cores at once."""
    from tilewise.backends.cuda.builders import build, workers_for
    from tilewise.backends.cuda.compile import missing
    from tilewise.kernels.recipes import recipe_of

    texts = {step.source for plan in plans for step in recipe_of(plan).steps if hasattr(step, "source")}
    needed, started = missing(texts, plans[0].machine.arch), time.monotonic()
    build(needed, plans[0].machine.arch, workers_for(len(needed)), lambda *_: None)
    print(f"{len(needed)} kernels compiled in {time.monotonic() - started:.0f} s", flush=True)


def microseconds(work, calls):
    """Of one call, by a graph of `calls`."""
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.cuda.stream(stream):
        work()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(calls):
            work()
    graph.replay()
    took = []
    for _ in range(5):
        start, stop = torch.cuda.Event(True), torch.cuda.Event(True)
        start.record()
        graph.replay()
        stop.record()
        torch.cuda.synchronize()
        took.append(start.elapsed_time(stop) * 1e3 / calls)
    return sorted(took)[2]


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def everywhere():
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        found = []
        for m, k, n in LARGE:
            M, N = torch.randn(m, k, device="cuda").to(dtype), torch.randn(k, n, device="cuda").to(dtype)
            P = torch.empty(m, n, dtype=dtype, device="cuda")
            usual, defined = (
                microseconds(lambda how=how, M=M, N=N, P=P: tw.matmul(M, N, out=P, **how), 3)
                for how in ({"precision": "ieee"}, {"reproducible": "everywhere"})
            )
            found.append(usual / defined)
            print(f"{dtype} {m}x{k}x{n}: {usual:.1f} and {defined:.1f} us, {found[-1]:.2f}", flush=True)
        print(f"{dtype}: mean {mean(found):.2f}, lowest {min(found):.2f}")


def batch():
    cases = []
    for at, (name, precision) in enumerate(KINDS):
        dtype = getattr(torch, name)
        for k, n in WEIGHTS[:: 1 if at < FULL else 3]:
            count = max(1, int(IN_L2 / (dtype.itemsize * k * n)))
            cases.append((name, precision, [randoms(k, n, dtype) for _ in range(min(count, 20))]))
    both = {}, {"reproducible": "batch"}
    operands = {name: randoms(max(ROWS), max(k for k, _ in WEIGHTS), getattr(torch, name)) for name, _ in KINDS}

    def of_rows(name, m, k):
        return operands[name].view(-1)[: m * k].view(m, k)

    compile_plans([
        tw.plan(of_rows(name, m, weights[0].shape[0]), weights[0], precision=precision, **how)
        for name, precision, weights in cases for m in ROWS for how in both
    ])  # fmt: skip
    ratios = {}
    for name, precision, weights in cases:
        k, n = weights[0].shape
        line = []
        for m in ROWS:
            some = weights if m < 256 else weights[:1]
            M = of_rows(name, m, k)
            P = torch.empty_like(tw.matmul(M, weights[0], precision=precision))
            usual, ours = (
                microseconds(lambda how=how, M=M, P=P, some=some: [tw.matmul(M, N, out=P, **how) for N in some], 2)
                for how in ({"precision": precision, **one} for one in both)
            )
            found = usual / ours
            kind = f"{name} {precision} m {'< 256' if m < 256 else '>= 256'}{' 4097' if k == 4097 else ''}"
            ratios.setdefault(kind, []).append(found)
            line.append(f"{m}: {ours / len(some):.1f} us {found:.2f}")
        print(f"{name} {precision} {k}x{n}: {', '.join(line)}", flush=True)
    for kind, found in ratios.items():
        print(f"{kind}: mean {mean(found):.2f}, lowest {min(found):.2f}")


def parts_of(M, rows, number):
    """Some rows of M, which lie otherwise with each number; every sixth time a stack of two."""
    first = number * 97 % (M.shape[0] - rows + 1)
    part = M[first : first + rows]
    if number % 4 == 1:
        return first, part.mT.contiguous().mT
    if number % 4 == 3:
        wide = torch.zeros(rows + 1, M.shape[1] + 5, dtype=M.dtype, device="cuda")
        wide[1:, 1 : M.shape[1] + 1] = part
        return first, wide[1:, 1 : M.shape[1] + 1]
    return first, part.view(2, rows // 2, -1) if number % 6 == 2 and rows % 2 == 0 else part


def operands_of(name, k, n):
    """4096 rows and N; every seventh row of many exponents, one with Inf, one of subnormal numbers."""
    M, N = torch.randn(4096, k, device="cuda"), torch.randn(k, n, device="cuda")
    M[::7] *= torch.exp2(torch.randint(-20, 12, (1, k), device="cuda"))
    M[5, k // 3], M[11] = float("inf"), 1e-39
    dtype = getattr(torch, name)
    return ((x * 30).clamp(-127, 127).to(dtype) if dtype == torch.int8 else x.to(dtype) for x in (M, N))


def rows():
    drawn, levels = random.Random(SEED), ("batch", None)
    counts = sorted({1, 2, 3, 5, 8, 13, 4096, *(round(4096 ** (i / 66)) for i in range(67))})
    shapes = [
        *WEIGHTS[:2],
        (4096, 1024),
        (3584, 512),
        *((drawn.randint(1, 3000), drawn.randint(1, 2000)) for _ in range(20)),
    ]
    print(f"seed {SEED}; {len(counts)} numbers of rows from 1 to 4096; N of {shapes}")
    total, wrong = 0, 0
    for name, precision in (*KINDS, ("float32", "ieee")):

        def bits(x, N, level, precision=precision):
            P = tw.matmul(x, N, precision=precision, reproducible=level)
            return P.view(getattr(torch, f"int{8 * P.dtype.itemsize}")).flatten(0, -2)

        cases = [tuple(operands_of(name, k, n)) for k, n in shapes]
        compile_plans([
            tw.plan(parts_of(M, count, number)[1], N, precision=precision, reproducible="batch")
            for M, N in cases for number, count in enumerate(counts)
        ])  # fmt: skip
        differ = {level: torch.zeros((), dtype=torch.int64, device="cuda") for level in levels}
        for M, N in cases:
            for level in levels if name == "bfloat16" else levels[:1]:
                whole = bits(M, N, level)
                for number, count in enumerate(counts):
                    first, part = parts_of(M, count, number)
                    differ[level] += (bits(part, N, level) != whole[first : first + count]).any(-1).sum()
        total, wrong = total + sum(counts) * len(cases), wrong + int(differ["batch"])
        default = f", of the default's {int(differ[None]):,}" if name == "bfloat16" else ""
        print(
            f"{name} {precision}: of {sum(counts) * len(cases):,} rows {int(differ['batch'])} differ{default}",
            flush=True,
        )
    print(f"{total:,} rows: {wrong} differ")


def seconds_of(work):
    """Of one call, waiting for the card at the end of ten."""
    took = []
    for _ in range(7):
        torch.cuda.synchronize()
        started = time.perf_counter()
        for _ in range(10):
            work()
        torch.cuda.synchronize()
        took.append((time.perf_counter() - started) / 10)
    return sorted(took)[3]


def differing(f, x):
    """Sequences for which `f` gives other bits alone, or in halves of a batch, than in the whole batch."""
    whole = f(x).view(torch.int16)
    parts = [(i, i + 1) for i in range(len(x))] + [(0, len(x) // 2), (len(x) // 2, len(x))]
    return sum(not torch.equal(f(x[i:j]).view(torch.int16), whole[i:j]) for i, j in parts)


def gelu(x):
    return torch.nn.functional.gelu(x, approximate="tanh")


def attention(q):
    return torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)


def gpt(compiled=False):
    from tilewise.bench.models import SIZES, LanguageModel

    for tokens in (256, 1024):
        sizes = replace(SIZES["cuda", "vocabulary"], tokens=tokens)
        torch.manual_seed(1)
        plain = LanguageModel(sizes).cuda().bfloat16().eval()
        x = torch.randint(sizes.vocabulary, (sizes.batch, tokens), device="cuda")
        models = {"torch": plain}
        for name, how in (("patched", {}), ("batch", {"reproducible": "batch"})):
            models[name] = LanguageModel(sizes).cuda().bfloat16().eval()
            models[name].load_state_dict(plain.state_dict())
            tw.torch.patch(models[name], **how)
        with torch.no_grad():
            inner = torch.randn(sizes.batch, tokens, sizes.width, device="cuda").bfloat16()
            heads = inner.view(sizes.batch, tokens, sizes.heads, -1).transpose(1, 2)
            own = {"LayerNorm": (plain.last, inner), "GELU": (gelu, inner), "attention": (attention, heads)}
            found = {name: differing(f, given) for name, (f, given) in own.items()}
            found |= {name: differing(model.logits, x) for name, model in models.items()}
            print(f"8x{tokens}, sequences that differ: {found}")
            took = {}
            for name, model in models.items():
                work = partial(torch.compile(model.logits) if compiled else model.logits, x)
                work()
                took[name] = seconds_of(work)
            line = ", ".join(f"{k} {1e3 * t:.2f} ms ({took['torch'] / t:.2f})" for k, t in took.items())
            print(f"8x{tokens}: {line}; batch beside patched {took['patched'] / took['batch']:.2f}", flush=True)


for part in sys.argv[1:] or ("everywhere", "batch"):
    {"everywhere": everywhere, "batch": batch, "rows": rows, "gpt": gpt, "gpt-compiled": partial(gpt, True)}[part]()

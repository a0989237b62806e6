"""Random stacks, groups and single products through the public calls, among poison, against float64 or int64.

    export PYTHONPATH=src
    python tests/cuda/drawn_calls.py --what stacks,groups --count 5000 --processes 10 --seconds 95 --variety few
    python tests/cuda/drawn_calls.py --what products --count 20000 --processes 6 --seconds 105 --top 400

Operands are small whole numbers, so that every sum is exact and P must be the rounded exact product. What lies between
lines, members and around P is NaN (or the largest integer) and must have the same bits afterwards; each call is made a
second time into fresh memory and must give the same bits. `--count` is of each kind. Prints one line of JSON last.
"""

import argparse
import collections
import json
import math
import os
import random
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))  # for the workers, which no conftest starts

from seeds import next_seed

FLOATS = ("bfloat16", "float16", "float32", "float64")
RINGS = {
    "min_plus": ("add", "amin"),
    "max_plus": ("add", "amax"),
    "max_min": ("minimum", "amax"),
    "max_times": ("mul", "amax"),
}
RING_CELLS = 2e7  # m·k·n of everything: what the oracle of a semiring holds at once


class Draw:
    """`variety` few: what compiles kernels of its own (other dtypes, semirings, epilogues) is drawn once for all
    workers; none: bfloat16 and float32."""

    def __init__(self, torch, seed, device, top, variety="many", common=0):
        self.torch, self.r, self.device, self.top = torch, random.Random(seed), device, top
        torch.manual_seed(seed)
        once = random.Random(common)
        if variety == "none":
            self.plain, self.grouped = [("bfloat16", "high"), ("float32", "high")], ("bfloat16", "float32")
            self.ringed, self.group_rings, self.rings, self.extras, self.activations, self.extra_dtypes = (
                [],
                [],
                0.0,
                0.0,
                (None,),
                (),
            )
        elif variety == "complex":
            self.plain = [("complex64", "high"), ("complex64", "ieee"), ("complex128", "high")]
            self.grouped, self.ringed, self.group_rings, self.rings = ("complex64", "complex128"), [], [], 0.0
            self.extras, self.activations, self.extra_dtypes = 0.2, (None,), ("complex64", "complex128")
        elif variety == "few":
            rare = once.choice((("float64", "high"), ("int32", "high"), ("float32", "tf32"), ("float32", "ieee")))
            self.plain = [("bfloat16", "high")] * 4 + [("float32", "high")] * 4 + [("float16", "high"), rare]
            self.ringed = [
                ("float32", once.choice(list(RINGS))),
                (once.choice(("int32", "float64")), once.choice(list(RINGS))),
            ]
            self.grouped, self.group_rings = (
                ("bfloat16",) * 4 + ("float32",) * 3 + ("float16",),
                [once.choice(list(RINGS)[:3])],
            )
            self.rings, self.extras, self.activations, self.extra_dtypes = (
                0.1,
                0.03,
                (once.choice((None, "relu")),),
                ("bfloat16", "float32"),
            )
        else:
            self.plain = [
                (name, "high")
                for name in ("bfloat16", "bfloat16", "float16", "float32", "float64", "int32", "int8", "complex64")
            ]
            self.plain += [("float32", "high"), ("float32", once.choice(("tf32", "ieee")))]
            self.ringed = [(name, ring) for name in ("float32", "float32", "int32", "float64") for ring in RINGS]
            self.grouped, self.group_rings = ("bfloat16", "bfloat16", "float16", "float32", "float64"), list(RINGS)[:3]
            self.rings, self.extras, self.activations, self.extra_dtypes = (
                0.15,
                0.1,
                (None, "relu"),
                (*FLOATS, "int32"),
            )

    def extent(self, most, least=1):
        return max(least, round(math.exp(self.r.uniform(math.log(least), math.log(most)))))

    def lying(self, stack, sides, dtype):
        """A stack that lies any way among poison: turned, along longer lines, members apart, starting late; and its
        memory."""
        torch, r = self.torch, self.r
        transposed, (rows, cols) = r.random() < 0.4, sides
        if transposed:
            rows, cols = cols, rows
        step = 2 if r.random() < 0.05 else 1
        line = step * cols + r.choice((0, 0, -cols % 8, 1, 3, 8))
        each = rows * line + r.choice((0, 0, -rows * line % 8, 8, 5))
        late = r.choice((0, 0, 0, 1, 3, 8))
        poison = torch.iinfo(dtype).max if wide_of(torch, dtype) is torch.int64 else math.nan
        memory = torch.full((late + math.prod(stack) * each + 16,), poison, dtype=dtype, device=self.device)
        steps = [each * math.prod(stack[i + 1 :]) for i in range(len(stack))]
        made = torch.as_strided(memory, (*stack, rows, cols), (*steps, line, step), late)
        made.copy_(self.whole_numbers(made.shape, dtype))
        return (made.mT if transposed else made), memory

    def whole_numbers(self, shape, dtype):
        made = self.torch.randint(-3, 4, shape, device=self.device).to(dtype)
        return made + 1j * self.torch.randint(-3, 4, shape, device=self.device) if dtype.is_complex else made

    def result(self, stack, sides, dtype):
        while True:
            made, memory = self.lying(stack, sides, dtype)
            if made.stride(-1) == 1 or self.r.random() < 0.3:
                return made, memory


def wide_of(torch, dtype):
    """In which small whole numbers are exact."""
    return torch.complex128 if dtype.is_complex else torch.float64 if dtype.is_floating_point else torch.int64


def exact(torch, M, N, ring, wide):
    if ring == "plus_times":
        A, B = M.to(wide), N.to(wide)
        return A @ B if wide is not torch.int64 or M.device.type == "cpu" else (A.cpu() @ B.cpu()).to(M.device)
    mul, add = RINGS[ring]
    terms = getattr(torch, mul)(M.to(wide)[..., :, :, None], N.to(wide)[..., None, :, :])
    return getattr(torch, add)(terms, -2)


def like(torch, view, memory):
    """The same view of other memory of the same length."""
    return torch.as_strided(memory, view.shape, view.stride(), view.storage_offset())


def judge(torch, call, P, memory, wanted, start=None):
    """None, or what is wrong: P itself, its surroundings, or the bits of a second call."""
    before = memory.clone()
    call(P)
    again = before.clone()
    second = like(torch, P, again)
    call(second)
    found = P.clone()
    ints = {1: torch.uint8, 2: torch.int16, 4: torch.int32}.get(memory.element_size(), torch.int64)
    same = torch.equal(memory.view(ints), again.view(ints))
    P.zero_()
    like(torch, P, before).zero_()
    if not torch.equal(memory.view(ints), before.view(ints)):
        return "something was written beside P"
    if wanted is not None:
        off = found.to(wanted.dtype) != wanted.to(found.dtype).to(wanted.dtype)
        if off.any():
            return f"{int(off.sum())} cells of {found.numel()} wrong"
    return None if same else "other bits the second time"


def kind_of(draw, torch):
    """(dtype, semiring, precision)."""
    if draw.r.random() < draw.rings:
        name, ring = draw.r.choice(draw.ringed)
        return getattr(torch, name), ring, "high"
    name, precision = draw.r.choice(draw.plain)
    return getattr(torch, name), "plus_times", precision


def product(draw, torch, tw, stacked):
    r = draw.r
    dtype, ring, precision = kind_of(draw, torch)
    if dtype == torch.int8 and stacked:
        dtype = torch.bfloat16
    stack = ()
    if stacked:
        stack = tuple(r.randint(1, 5) for _ in range(r.choice((1, 1, 2, 3))))
        stack = (r.randint(20, 200),) if r.random() < 0.25 else stack
    elif r.random() < 0.1:
        stack = (r.randint(2, 4),)
    top = draw.top if math.prod(stack) < 30 else draw.top // 3
    while True:
        m, k, n = (draw.extent(top) for _ in range(3))
        if r.random() < 0.25:
            m, k, n = (-(-x // 8) * 8 for x in (m, k, n))
        if ring == "plus_times" or math.prod(stack) * m * k * n <= RING_CELLS:
            break
    operands = []
    for sides in ((m, k), (k, n)):
        own = tuple(1 if r.random() < 0.2 else e for e in stack)
        operands.append(draw.lying(own, sides, dtype)[0].expand(*stack, *sides))
    M, N = operands
    P, memory = draw.result(stack, (m, n), dtype)
    wide = wide_of(torch, dtype)
    wanted, more = exact(torch, M, N, ring, wide), {}
    words = f"{stack} {m}x{k}x{n} {dtype} {ring} {precision} {M.stride()} {N.stride()} {P.stride()}"
    extra = str(dtype).removeprefix("torch.") in draw.extra_dtypes
    if extra and ring == "plus_times" and dtype.is_floating_point and r.random() < draw.extras:
        more["bias"] = torch.randint(-3, 4, (n,), device=draw.device).to(dtype)
        more["activation"] = r.choice(draw.activations)
        wanted = wanted + more["bias"].to(wide)
        wanted = wanted.relu() if more["activation"] else wanted
        words += f" bias {more['activation']}"
    elif extra and r.random() < draw.extras:
        more["accumulate"] = True
        ring_add = {"plus_times": torch.add, "min_plus": torch.minimum}.get(ring, torch.maximum)
        wanted = ring_add(wanted, P.to(wide))
        words += " accumulate"
    if dtype == torch.int8:
        wanted = wanted.to(torch.int8)
    if precision != "high":
        more["precision"] = precision
    kernel = tw.plan(
        M,
        N,
        **({"semiring": ring} if ring != "plus_times" else {}),
        **({"precision": precision} if precision != "high" else {}),
    ).kernel
    call = lambda out: tw.matmul(M, N, out=out, semiring=ring, **more)  # noqa: E731
    return f"{'stack' if stacked else 'product'} {kernel}", words, judge(torch, call, P, memory, wanted)


def grouped(draw, torch, tw):
    r = draw.r
    if r.random() < 0.05:
        return lists(draw, torch, tw)
    if r.random() < 0.05:
        return scattered(draw, torch, tw)
    ring = r.choice(draw.group_rings) if r.random() < draw.rings else "plus_times"
    dtype = torch.float32 if ring != "plus_times" else getattr(torch, r.choice(draw.grouped))
    along = "rows" if ring != "plus_times" else r.choice(("rows", "rows", "k"))
    most = (300, 60, 80) if ring != "plus_times" else (2000, draw.top // 2, draw.top)
    groups, rows, k, n = r.randint(1, 40), *(draw.extent(x) for x in most)
    if r.random() < 0.3:
        k, n = (-(-x // 8) * 8 for x in (k, n))
    picks = along == "rows" and r.random() < 0.2
    tokens = draw.extent(rows) if picks else rows
    x, _ = draw.lying((), (tokens, k), dtype)
    w, _ = draw.lying(() if along == "k" else (groups,), (rows, n) if along == "k" else (k, n), dtype)
    P, memory = draw.result((groups,) if along == "k" else (), (k, n) if along == "k" else (rows, n), dtype)
    bad = r.random() < 0.06 and draw.device != "cpu"
    low, high = (-rows, 2 * rows) if bad else (0, rows)
    ends = [r.randint(low, high) for _ in range(groups)]
    ends = ends if bad else sorted(ends)
    if ring != "plus_times":
        ends[-1] = rows
    offsets = torch.tensor(ends, dtype=r.choice((torch.int32, torch.int64)), device=draw.device)
    more = {"semiring": ring} if ring != "plus_times" else {}
    left = x
    if picks:
        more["rows"] = torch.randint(0, tokens, (rows,), device=draw.device)
        left = x[more["rows"]]
    wanted = None
    if not bad:
        wide = wide_of(torch, dtype)
        wanted = torch.zeros(P.shape, dtype=wide, device=draw.device)
        for group, (a, b) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
            if along == "k":
                wanted[group] = left[a:b].to(wide).T @ w[a:b].to(wide)
            elif b > a:
                wanted[a:b] = exact(torch, left[a:b], w[group], ring, wide)
    call = lambda out: tw.grouped_matmul(x, w, offsets, along=along, out=out, **more)  # noqa: E731
    words = f"{rows}x{k}x{n} {groups} groups {along} {dtype} {ring} ends {ends} {x.stride()} {w.stride()} {P.stride()}"
    return (
        f"groups {along}{' gathered' if picks else ''}{' bad offsets' if bad else ''}",
        words,
        judge(torch, call, P, memory, wanted),
    )


def lists(draw, torch, tw):
    dtype, pairs = getattr(torch, draw.r.choice(("bfloat16", "float32"))), []
    for _ in range(draw.r.randint(1, 30)):
        m, k, n = (draw.extent(200) for _ in range(3))
        pairs.append(tuple(draw.lying((), sides, dtype)[0] for sides in ((m, k), (k, n))))
    made, again = tw.matmul_many(pairs), tw.matmul_many(pairs)
    wrong = None
    for (M, N), P, Q in zip(pairs, made, again, strict=True):
        if not torch.equal(P.double(), (M.double() @ N.double()).to(dtype).double()) or not torch.equal(P, Q):
            wrong = f"{tuple(M.shape)} by {tuple(N.shape)} is wrong"
    return "list", f"{len(pairs)} pairs {dtype}", wrong


def scattered(draw, torch, tw):
    dtype = getattr(torch, draw.r.choice(("bfloat16", "float32")))
    rows, n, count = draw.extent(600), draw.extent(300), draw.r.randint(1, 90)
    y, _ = draw.lying((), (rows, n), dtype)
    index = torch.randint(-1, count + 1, (rows,), device=draw.device)
    weights = (torch.randint(0, 65, (rows,), device=draw.device) / 64).float()
    made, again = (tw.scatter_rows(y, index, count, weights=weights) for _ in range(2))
    keep = (index >= 0) & (index < count)
    wanted = torch.zeros(count, n, dtype=torch.float64, device=draw.device)
    wanted.index_add_(0, index[keep], y[keep].double() * weights[keep].double()[:, None])
    right = torch.equal(made.double(), wanted.to(dtype).double()) and torch.equal(made, again)
    return "scatter", f"{rows}x{n} to {count} {dtype}", None if right else "wrong"


def worker(args):
    import torch

    import tilewise as tw

    end = time.monotonic() + args.seconds
    draw = Draw(torch, args.seed, args.device, args.top, args.variety, args.common)
    makers = {
        "stacks": lambda: product(draw, torch, tw, True),
        "groups": lambda: grouped(draw, torch, tw),
        "products": lambda: product(draw, torch, tw, False),
    }
    done, kinds, wrong = collections.Counter(), collections.Counter(), []
    whats = args.what.split(",")
    while time.monotonic() < end and any(done[what] < args.count for what in whats):
        for what in whats:
            if done[what] >= args.count:
                continue
            state = draw.r.getstate()
            try:
                kind, words, fault = makers[what]()
            except Exception as error:  # a refusal of what ought to be taken is a finding
                kind, words, fault = (
                    f"{what} {type(error).__name__}",
                    str(hash(state)),
                    f"{type(error).__name__}: {error}",
                )
                if "CUDA error" in str(error) or "illegal" in str(error):
                    wrong.append([what, done[what], args.seed, words, fault])
                    print(json.dumps({"done": done, "kinds": kinds, "wrong": wrong}))
                    return
            done[what] += 1
            kinds[kind] += 1
            if fault:
                wrong.append([kind, done[what], args.seed, words, fault[:400]])
    print(json.dumps({"done": done, "kinds": kinds, "wrong": wrong}))


def gather(args):
    """Several workers of this file; what they found together."""
    each = -(-args.count * 14 // args.processes // 10)  # those that compile fall behind, and others make up for them
    varieties = [
        args.variety if args.variety in ("many", "complex") or i % 5 == 0 else "none" for i in range(args.processes)
    ]
    environment = {**os.environ, "TILEWISE_COMPILE": "alone", "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    given = {"what": args.what, "count": each, "seconds": args.seconds, "device": args.device, "top": args.top}
    running = []
    for i, variety in enumerate(varieties):
        own = {**given, "seed": args.seed + i, "variety": variety, "common": args.seed}
        command = [sys.executable, __file__, "--worker", *(f"--{name}={value}" for name, value in own.items())]
        pipe = subprocess.PIPE
        running.append(subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment))
    found = {
        "seed": args.seed,
        "count": args.count,
        "done": collections.Counter(),
        "kinds": collections.Counter(),
        "wrong": [],
        "ended": [],
    }
    for process in running:
        try:
            text, said = process.communicate(timeout=args.seconds + 15)
        except subprocess.TimeoutExpired:
            process.kill()
            text, said = process.communicate()
        try:
            part = json.loads(text.strip().splitlines()[-1])
        except (IndexError, ValueError):
            found["ended"].append(f"exit {process.returncode}: {said[-600:]}")
            continue
        found["done"].update(part["done"])
        found["kinds"].update(part["kinds"])
        found["wrong"] += part["wrong"]
    return found


def main(arguments=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--what", default="stacks,groups")
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--processes", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=next_seed() % 2**31)
    parser.add_argument("--top", type=int, default=600)
    parser.add_argument("--variety", choices=("none", "few", "many", "complex"), default="many")
    parser.add_argument("--common", type=int, default=0, help="what all workers draw alike")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write all that was found as JSON")
    parser.add_argument("--worker", action="store_true")
    args = parser.parse_args(arguments)
    if args.worker:
        return worker(args)
    found = gather(args)
    for line in found["wrong"][:20]:
        print("WRONG", line)
    for line in found["ended"]:
        print("A WORKER ENDED", line)
    print("by kind:", dict(found["kinds"].most_common(40)))
    if args.report:
        args.report.write_text(json.dumps(found))
    print(
        json.dumps(
            {key: found[key] for key in ("seed", "count", "done")}
            | {"wrong": len(found["wrong"]), "ended": len(found["ended"])}
        )
    )
    return found


if __name__ == "__main__":
    main()

"""Kernels of other cards on the card at hand: right, and how fast, one table at the end.

    PYTHONPATH=src python3 tests/cuda/other_cards.py [seconds]

Each card is simulated (`TILEWISE_PRETEND`) by a process of its own. First random products of every dtype, layout,
alignment and stack, and each candidate configuration, among poison, against exact references; then 4096³ by every
candidate, in turns with mma.sync alone on fragments in registers, the limit. Exits 1 when one is wrong.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

BARS = {
    "80 bfloat16": 0.84, "80 float16": 0.84, "80 tf32": 0.72, "80 int8 KK": 0.72, "80 int8 NN": 0.55,
    "89 bfloat16": 0.78, "89 int8": 0.65, "89 float8": 0.60, "75 float16": 0.68, "75 int8": 0.62,
}  # fmt: skip
DTYPES = {
    "75": ("float16", "int8"),
    "80": ("bfloat16", "float16", "int8", "tf32"),
    "86": ("bfloat16", "int8", "tf32"),
    "89": ("bfloat16", "int8", "float8"),
}


TIMED = (("80", "bfloat16,float16,int8,tf32"), ("75", "float16,int8"), ("89", "bfloat16,int8,float8"))


def candidates(card: str, dtype: str) -> list:
    """Tiles to time: the model's, and others that may be as fast."""
    from tilewise.kernels.mma_gemm.mma_sync.tiles import MmaTile as Tile
    from tilewise.kernels.mma_gemm.mma_sync.tiles import tiles_of

    size = {"tf32": 4, "int8": 1, "float8": 1}.get(dtype, 2)
    tiles = [replace(tile, share=1) for tile in tiles_of(dtype, size, f"sm_{card}")]
    wide, square = Tile(128, 256, 2, 4, 1, 1, phase=64, along=1), Tile(128, 128, 2, 4, 1, 1, phase=64)
    pair = Tile(128, 128, 2, 2, 2, 1, phase=64, along=1)
    extra = [] if dtype == "float8" else [wide, replace(wide, rows=256, cols=128, warps_m=4, warps_n=2), square, pair]
    return tiles + [tile for tile in extra if all(shape(tile) != shape(x) for x in tiles)]


def shape(tile):
    """All that a text depends on."""
    return replace(tile, share=1, along=0)


# --- a child: one card ---


def matrix(torch, rows, cols, name, transposed=False, extra=0, offset=0, stack=()):
    """rows×cols inside larger memory that is poison elsewhere. Floats are small whole numbers: sums are exact."""
    dtype = getattr(torch, {"tf32": "float32", "float8": "float8_e4m3fn"}.get(name, name))
    lines, length = (cols, rows) if transposed else (rows, cols)
    lead, count = length + extra, max(1, *stack, 1)
    memory = torch.empty((count * lines * lead + offset + 64,), device="cuda", dtype=dtype)
    memory.view(torch.uint8).fill_(0x7F)  # NaN in every float
    view = memory[offset : offset + count * lines * lead].view(count, lines, lead)[:, :, :length]
    low, high = (-128, 128) if name == "int8" else (-3, 4)
    view.copy_(torch.randint(low, high, view.shape, device="cuda").float().to(dtype))
    view = view.transpose(1, 2) if transposed else view
    return (view if stack else view[0]), memory


def exact(torch, M, N, result):
    M, N = (x.float().double() if x.dtype.itemsize == 1 and x.is_floating_point() else x.double() for x in (M, N))
    made = M @ N
    return made.long().to(result) if not result.is_floating_point else made.to(result)


def options(name):
    return {"tf32": {"precision": "tf32"}, "int8": {"dtype": "int32"}}.get(name, {})


def wrong_products(torch, card, name, rng, until):
    """Random products by whatever a plan takes, and by mma_sync by name: (tried, wrong)."""
    import tilewise as tw

    tried, wrong = 0, 0
    while time.monotonic() < until:
        m, k, n = (rng.choice((1, 7, 16, 64, 100, 129, 200, 256, 300, 333, 512)) for _ in range(3))
        stack = (rng.choice((2, 3)),) if rng.random() < 0.25 else ()
        transposed = [rng.random() < 0.5 for _ in range(2)]
        extra, offset = rng.choice(((0, 0), (0, 0), (1, 0), (3, 1), (8, 0), (2, 2), (4, 4)))
        M = matrix(torch, m, k, name, transposed[0], extra, offset, stack)[0]
        N = matrix(torch, k, n, name, transposed[1], extra, offset, stack)[0]
        results = {"int8": "int32", "tf32": "float32", "float8": rng.choice(("float32", "bfloat16"))}
        result = getattr(torch, results.get(name, name))
        P, around = matrix(torch, m, n, results.get(name, name), False, extra, offset, stack)
        wanted = exact(torch, M, N, result)
        how = dict(options(name)) | ({"dtype": result} if name == "float8" else {})
        pinned = None if tried % 8 == 7 else candidates(card, name)[tried // 8 % 2]
        try:
            if pinned is None or not by_tile(torch, M, N, P, how, pinned):
                tw.matmul(M, N, out=P, **how)
            torch.cuda.synchronize()
            right = torch.equal(P, wanted)
            outside = torch.ones_like(around, dtype=torch.bool)
            outside.as_strided(P.shape, P.stride(), P.storage_offset()).fill_(False)
            right = right and bool((around[outside].view(torch.uint8) == 0x7F).all())
        except Exception as error:  # a refusal of a plan that should be there counts as wrong
            right = False
            print(f"sm_{card} {name} {type(error).__name__}: {str(error)[:300]}", flush=True)
        tried += 1
        if not right:
            wrong += 1
            if wrong < 6:
                print(f"WRONG sm_{card} {name} {m}x{k}x{n} {stack} {transposed} {extra} {offset} {how}", flush=True)
    return tried, wrong


def by_tile(torch, M, N, P, how, tile):
    """Multiplied by a configuration with this tile; False where none takes it."""
    import tilewise.planning.choose as planning
    from tilewise import matmul
    from tilewise.kernels.by_configs import timed
    from tilewise.kernels.mma_gemm.mma_sync import model

    def config(problem, machine, requested=False):
        every = timed(model.tables(problem, machine, True))
        found = [one for one, _ in every if shape(one.tile) == shape(tile)]
        return 1e-9, found[0]

    usual, model.best_config = model.best_config, config
    planning._plan.cache_clear()
    try:
        matmul(M, N, out=P, kernel="mma_sync", **how)
    except IndexError:
        return False
    finally:
        model.best_config = usual
        planning._plan.cache_clear()
    return True


def runner(torch, machine, M, N, P, name, tile):
    """A function that queues the product by this very tile."""
    import tilewise as tw
    from tilewise.backends.cuda.launcher import Launcher
    from tilewise.kernels.mma_gemm.mma_sync.family import MmaSync
    from tilewise.kernels.mma_gemm.mma_sync.model import MmaConfig
    from tilewise.kernels.recipes import recipe_of

    problem = tw.plan(M, N, **options(name)).problem
    plan = MmaSync().pinned(problem, machine, MmaConfig(tile, ("as it is", "as it is"), 16))
    recipe = recipe_of(plan)
    launcher = Launcher(recipe, "cuda:0")
    scratch = torch.empty(recipe.scratch_bytes + 256, device="cuda", dtype=torch.uint8)
    stream = torch.cuda.current_stream().cuda_stream
    where = {"M": M.data_ptr(), "N": N.data_ptr(), "P": P.data_ptr(), "scratch": scratch.data_ptr()}
    return lambda: (launcher(stream, **where), scratch)[0]


LIMIT = """
extern "C" __global__ void limit(const unsigned* bits, Sum* out, int times) {
    Sum sums[4][8][4];
    for (int i = 0; i < 128; ++i) sums[i / 32][i / 4 % 8][i % 4] = 0;
    unsigned m[4][4], n[8][2], at = threadIdx.x * 7 + blockIdx.x;
    for (int i = 0; i < 16; ++i) m[i / 4][i % 4] = bits[(at = at * 5 + 3) % 4096];
    for (int i = 0; i < 16; ++i) n[i / 2][i % 2] = bits[(at = at * 5 + 3) % 4096];
    #pragma unroll 1
    for (int r = 0; r < times; ++r) {
        #pragma unroll
        for (int i = 0; i < 4; ++i) {
            m[i][0] ^= r;
            #pragma unroll
            for (int j = 0; j < 8; ++j) multiply(sums[i][j], m[i], n[j]);
        }
    }
    Sum all = 0;
    for (int i = 0; i < 128; ++i) all += sums[i / 32][i / 4 % 8][i % 4];
    if (all == 12345) *out = all;
}
"""


def limit(torch, machine, bits):
    """(a function that queues products of fragments in registers and nothing else, its multiply-add steps); the
    fragments of `bits` all differ, from turn to turn too, since the compiler merges equal products."""
    import ctypes

    from tilewise.backends.cuda.launcher import Launcher
    from tilewise.core.recipe import Address, Launch, Recipe
    from tilewise.kernels.mma_gemm.mma_sync.text import generation
    from tilewise.kernels.shared.fragments import ATOMS, product_of_fragments

    name, times = str(bits.dtype).removeprefix("torch."), 2000
    dtype = _dtype(name)
    head = f"typedef {'int' if name == 'int8' else 'float'} Sum;\n"
    text = head + product_of_fragments(dtype, generation(machine.arch)) + LIMIT
    given = (Address("M"), Address("P"), ctypes.c_int(times))
    launch = Launch.of(text, "limit", (machine.units,), (256,), given)
    launcher, out = Launcher(Recipe((launch,)), "cuda:0"), torch.zeros(16, device="cuda")
    stream = torch.cuda.current_stream().cuda_stream
    steps = machine.units * 8 * times * 32 * 16 * 8 * ATOMS[name].k
    return lambda: (launcher(stream, M=bits.data_ptr(), P=out.data_ptr()), out)[0], steps


def _dtype(name):
    from tilewise.algebra.dtypes import DTYPES, FLOAT8

    return DTYPES.get(name) or FLOAT8[name]


def described(tile, arch):
    warps, rolling = f"{tile.warps_m}x{tile.warps_n}", " rolling" if tile.rolling else ""
    return f"{tile.rows}x{tile.cols}w{warps}r{tile.resident}p{tile.phase}s{tile.stages(arch)}{rolling}"


LAYOUTS = {"KK": (False, True), "NN": (False, False), "TT": (True, True), "TN": (True, False)}


def child(card: str, names: str, job: str, seconds: float) -> int:
    import torch

    from tilewise.backends.cuda.device import describe

    machine, wrong = describe("cuda:0"), 0
    for name in names.split(","):
        if job == "check":
            wrong += check(torch, machine, card, name, seconds)
            continue
        for size in (4096, 8192, 4097) if card == "80" and name.endswith("float16") else (4096,):
            for layout in ("KK", "NN"):
                timed(torch, card, name, layout, machine, size)
    return int(wrong > 0)


def check(torch, machine, card, name, seconds):
    wrong, arch = 0, machine.arch
    for number, tile in enumerate(candidates(card, name)):
        if not tile.fits(arch) or (number > 1 and card == "86"):
            continue
        for layout, transposed in LAYOUTS.items():
            if layout in ("TT", "TN") and number:
                continue
            m, k, n = 272, 304, 400
            M, N = matrix(torch, m, k, name, transposed[0])[0], matrix(torch, k, n, name, transposed[1])[0]
            P = matrix(torch, m, n, {"int8": "int32", "tf32": "float32", "float8": "float32"}.get(name, name))[0]
            try:
                runner(torch, machine, M, N, P, name, tile)()
                torch.cuda.synchronize()
                right = torch.equal(P, exact(torch, M, N, P.dtype))
            except Exception as error:
                right = False
                print(f"{type(error).__name__}: {str(error)[:300]}", flush=True)
            wrong += not right
            if not right:
                print(f"WRONG sm_{card} {name} {layout} {described(tile, arch)}", flush=True)
    tried, bad = wrong_products(torch, card, name, random.Random(f"{card} {name}"), time.monotonic() + seconds)
    print(f"sm_{card} {name}: {tried} random products, {bad} wrong; {wrong} tiles wrong", flush=True)
    return wrong + bad


def timed(torch, card, name, layout, machine, size):
    """Rates of the plan's choice and, at 4096, of each candidate, and of the instruction alone, in turns."""
    import tilewise as tw

    kind, transposed = {"tf32": "float32", "float8": "float8_e4m3fn"}.get(name, name), LAYOUTS[layout]
    made = []
    for side in range(2):
        x = torch.randn(size, size, device="cuda")
        x = torch.randint_like(x, -128, 128) if name == "int8" else x
        x = x.to(getattr(torch, kind))
        made.append(x.T if transposed[side] else x)
    M, N = made
    result = {"int8": torch.int32, "float8": torch.float32}.get(name, M.dtype)
    P = torch.empty(size, size, device="cuda", dtype=result)
    alone, steps = limit(torch, machine, M)
    runs = {"limit": (alone, steps)}
    try:
        tw.matmul(M, N, out=P, **options(name))
        plan = tw.plan(M, N, **options(name))
        spec = plan.config.spec() if hasattr(plan.config, "spec") else ""
        runs[f"plan: {plan.kernel} {spec}"] = lambda: tw.matmul(M, N, out=P, **options(name)), size**3
    except Exception as error:
        print(f"| sm_{card} {name} {layout} {size} | plan | {str(error)[:200]} |", flush=True)
    for tile in candidates(card, name) if size == 4096 else ():
        if not tile.fits(machine.arch):
            continue
        try:
            runs[described(tile, machine.arch)] = runner(torch, machine, M, N, P, name, tile), size**3
        except Exception as error:
            print(f"| sm_{card} {name} {layout} | {described(tile, machine.arch)} | {str(error)[:160]} |", flush=True)
    spent = in_turns(torch, runs)
    rates = {way: 2e-9 * steps / spent[way] for way, (_, steps) in runs.items()}
    for way, rate in sorted(rates.items(), key=lambda pair: -pair[1]):
        print(f"| sm_{card} {name} {layout} {size} | {way} | {rate:.0f} | {rate / rates['limit']:.3f} |", flush=True)


def in_turns(torch, runs):
    """The median milliseconds of each, of five turns; before each turn the card rests, so that none pays with its clock
    for the power that the one before drew."""
    spent = {way: [] for way in runs}
    for _ in range(5):
        for way, (run, _) in runs.items():
            time.sleep(0.01)
            run()
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            for _ in range(3):
                run()
            end.record()
            end.synchronize()
            spent[way].append(start.elapsed_time(end) / 3)
    return {way: sorted(every)[2] for way, every in spent.items()}


def start(card: str, names: str, job: str, seconds: float) -> subprocess.Popen:
    here = Path(__file__).resolve()
    path = os.pathsep.join(filter(None, (str(here.parents[2] / "src"), os.environ.get("PYTHONPATH"))))
    given = {**os.environ, "TILEWISE_PRETEND": f"sm_{card}", "TILEWISE_COMPILE": "alone", "PYTHONPATH": path}
    given |= {"CUDA_CACHE_DISABLE": "0", "CUDA_CACHE_MAXSIZE": str(2**31)}
    command = [sys.executable, str(here), "--child", card, names, job, str(seconds)]
    return subprocess.Popen(command, env=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def ended(process: subprocess.Popen, seconds: float) -> str:
    try:
        return process.communicate(timeout=max(1.0, seconds))[0]
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()[0] + f"ran out of time: {process.args[3:]}\n"


def main() -> int:
    budget = float(sys.argv[1]) if len(sys.argv) > 1 else 230.0
    began, failed, tables = time.monotonic(), 0, []
    kinds = [(card, name) for card, names in DTYPES.items() for name in names]
    running = [start(card, name, "check", budget * 0.15) for card, name in kinds]
    for process in running:
        print(ended(process, budget * 0.6 - (time.monotonic() - began)), end="", flush=True)
        failed += process.returncode != 0
    print(f"checked after {time.monotonic() - began:.0f} s", flush=True)
    for card, names in TIMED:
        tables.append(ended(start(card, names, "time", 0), budget - (time.monotonic() - began)))
    print(f"bars: {BARS}")
    print("| as card | by | T/s | share of the limit |\n| --- | --- | --- | --- |")
    print("".join(tables), end="")
    print(f"{'something was WRONG' if failed else 'all right'}, {time.monotonic() - began:.0f} s")
    return int(failed > 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        sys.exit(child(*sys.argv[2:5], float(sys.argv[5])))
    sys.exit(main())

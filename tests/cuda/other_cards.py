"""Kernels of other cards on the card at hand: right, and how fast, one table at the end.

    PYTHONPATH=src python3 tests/cuda/other_cards.py [seconds]

Each card is simulated (`TILEWISE_PRETEND`) by a process of its own. First random products of every dtype, layout,
alignment and stack, and each candidate configuration, among poison, against exact references; then 4096³ by every
candidate, one at a time. Limits are those of mma.sync on an H200, measured in registers. Exits 1 when one is wrong.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

LIMITS = {"float16": 631, "bfloat16": 637, "tf32": 319, "int8": 1273, "float8": 1499, "75 float16": 460, "75 int8": 467}
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


def candidates(card: str, dtype: str) -> list:
    """Tiles to time."""
    from tilewise.kernels.mma_gemm.mma_sync.model import MmaTile as Tile

    wide, rolled = Tile(128, 256, 2, 4, 1, 1, phase=64), Tile(128, 256, 2, 4, 1, 1, True, phase=64)
    big, tall = Tile(128, 256, 2, 4, 1, 1), Tile(256, 128, 4, 2, 1, 1, phase=64)
    square, square64 = Tile(128, 128, 2, 4, 1, 1), Tile(128, 128, 2, 4, 1, 1, phase=64)
    pair, rolled_pair = Tile(128, 128, 2, 2, 2, 1, phase=64), Tile(128, 128, 2, 2, 2, 1, True, phase=64)
    if card == "75":
        return [wide, square64, pair, tall] if dtype == "int8" else [wide, square, pair, tall]
    if dtype == "float8":
        small = Tile(64, 128, 2, 4, 2, 1, phase=64), Tile(128, 128, 4, 2, 1, 1, phase=64)
        return [square64, Tile(128, 128, 2, 4, 1, 1, True, phase=64), square, *small, wide]
    if dtype == "tf32":
        return [wide, square, rolled, pair, rolled_pair]
    return [wide, big, rolled, pair, rolled_pair] + [tall] * (dtype == "bfloat16")


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
    from tilewise.kernels.mma_gemm.mma_sync import model

    def config(problem, machine, requested=False):
        every = model.timed(model.tables(problem, machine, True))
        found = [one for one, _ in every if replace(one.tile, share=1) == tile]
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


def described(tile, arch):
    warps, rolling = f"{tile.warps_m}x{tile.warps_n}", " rolling" if tile.rolling else ""
    return f"{tile.rows}x{tile.cols}w{warps}r{tile.resident}p{tile.phase}s{tile.stages(arch)}{rolling}"


LAYOUTS = {"KK": (False, True), "NN": (False, False), "TT": (True, True), "TN": (True, False)}


ROUNDING = "static __device__ __forceinline__ void round_word(unsigned& word) {}\n"


def child(card: str, names: str, job: str, seconds: float) -> int:
    import torch

    import tilewise.kernels.mma_gemm.mma_sync.text as text
    import tilewise.kernels.shared.fragments as fragments
    from tilewise.backends.cuda.device import describe

    machine, wrong = describe("cuda:0"), 0
    if ":" in names:  # without rounding to tf32, or without promoting sums of 8-bit floats: to see what it costs
        names = names.split(":")[0]
        fragments.ROUNDING, text.FLOAT8 = ROUNDING, {}
    for name in names.split(","):
        if job == "check":
            wrong += check(torch, machine, card, name, seconds)
            continue
        for layout in ("KK", "NN"):
            timed(torch, card, name, layout, machine)
    return int(wrong > 0)


def check(torch, machine, card, name, seconds):
    wrong, arch = 0, machine.arch
    for number, tile in enumerate(candidates(card, name)):
        if tile.stages(arch) < 2 + tile.rolling or (number > 1 and card == "86"):
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


def timed(torch, card, name, layout, machine):
    import tilewise as tw

    size, transposed = 4096, LAYOUTS[layout]
    kind = {"tf32": "float32", "float8": "float8_e4m3fn"}.get(name, name)
    made = []
    for side in range(2):
        x = (
            torch.randint(-128, 128, (size, size), device="cuda")
            if name == "int8"
            else torch.randn(size, size, device="cuda")
        )
        x = x.to(getattr(torch, kind))
        made.append(x.T if transposed[side] else x)
    M, N = made
    result = {"int8": torch.int32, "float8": torch.float32}.get(name, M.dtype)
    P = torch.empty(size, size, device="cuda", dtype=result)
    limit = LIMITS.get(f"{card} {name}") or LIMITS[name]
    ways = {"plan": lambda: tw.matmul(M, N, out=P, **options(name))}
    try:
        ways["plan"]()
        plan = tw.plan(M, N, **options(name))
        ways[f"plan: {plan.kernel} {plan.config.spec() if hasattr(plan.config, 'spec') else ''}"] = ways.pop("plan")
    except Exception as error:
        print(f"| sm_{card} {name} {layout} | plan | {str(error)[:200]} |", flush=True)
        ways = {}
    for tile in candidates(card, name):
        if tile.stages(machine.arch) < 2 + tile.rolling:
            continue
        try:
            ways[described(tile, machine.arch)] = runner(torch, machine, M, N, P, name, tile)
        except Exception as error:
            print(f"| sm_{card} {name} {layout} | {described(tile, machine.arch)} | {str(error)[:160]} |", flush=True)
    best = dict.fromkeys(ways, 1e9)
    for _ in range(3):
        for way, run in ways.items():
            run()
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            for _ in range(4):
                run()
            end.record()
            end.synchronize()
            best[way] = min(best[way], start.elapsed_time(end) / 4)
            time.sleep(0.003)
    for way, spent in sorted(best.items(), key=lambda pair: pair[1]):
        rate = 2 * size**3 / spent * 1e-9
        print(f"| sm_{card} {name} {layout} | {way} | {rate:.0f} | {rate / limit:.2f} |", flush=True)


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
    kinds += [("80", "tf32:not rounded"), ("89", "float8:not promoted")]
    running = [start(card, name, "check", budget * 0.15 if ":" not in name else 0) for card, name in kinds]
    for process in running:
        print(ended(process, budget * 0.6 - (time.monotonic() - began)), end="", flush=True)
        failed += process.returncode != 0 and ":" not in process.args[4]
    print(f"checked after {time.monotonic() - began:.0f} s", flush=True)
    for card, names in (
        ("80", "int8,bfloat16,tf32"),
        ("75", "float16,int8"),
        ("89", "float8,int8,bfloat16"),
        *kinds[-2:],
    ):
        process = start(card, names, "time", 0)
        said, name = ended(process, budget - (time.monotonic() - began)), names.split(":")[0]
        tables.append(said.replace(f" {name} ", f" {names} ") if ":" in names else said)
    print(f"bars: {BARS}")
    print("| as card | by | T/s | share of the limit |\n| --- | --- | --- | --- |")
    print("".join(tables), end="")
    print(f"{'something was WRONG' if failed else 'all right'}, {time.monotonic() - began:.0f} s")
    return int(failed > 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        sys.exit(child(*sys.argv[2:5], float(sys.argv[5])))
    sys.exit(main())

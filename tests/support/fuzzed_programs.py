"""Programs spoilt at random, through the front end of `tilewise run` and, part of them, executed.

A spoilt program is refused in a sentence, lowered or run within its limits: no other exception, no signal, nothing opened
outside its folder. Programs that are executed get a process each, forked from one that has everything imported, with a
hook that hears of every file that Python opens and of every process and socket.

    python tests/support/fuzzed_programs.py FRONT EXECUTED PROCESSES SECONDS [SEED [native]]     what was found, and counts as a last line of JSON

They are executed as WebAssembly with no sandbox of the system around it, or as machine code in the sandbox.

A program in which something is found is kept in the folder fuzzed-programs among the temporary files.
"""
# ruff: noqa: E402, E501 — lines of C++; imports from beside this file

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import pkgutil
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "emulator" / "host")]

from generated_programs import Draw
from test_fuzz import spoilt

import hostile
import hostile_programs
import tilewise.emulator as everything
from lowered_programs import lowered
from small_programs import small_programs
from tilewise.emulator.check import program_child
from tilewise.emulator.host import header_cache, translation_unit
from tilewise.emulator.host.header_cache import Headers
from tilewise.emulator.host.options import NATIVE, OFF, REQUIRED, WASM, Options
from tilewise.emulator.host.program_report import ANNOUNCED
from tilewise.emulator.host.runtime.session import NEEDS
from tilewise.emulator.host.target.webassembly import WebAssembly
from tilewise.emulator.parse.declared import Declared
from tilewise.errors import TilewiseError
from tilewise.system.memory import resident

TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|<<<|>>>|[-+*/%&|^=<>!]=?|\S|\s+")
ENDS = {"exit", "abort", "crash", "limit", "refused"}
NEVER = ("subprocess.Popen", "os.system", "os.exec", "os.fork", "os.posix_spawn", "socket.connect")
FILES = ("open", "os.remove", "os.rename")
ROOM = "/dev/shm" if os.path.isdir("/dev/shm") else None  # a file a program: a disk takes a tenth of the time
KEPT = Path(tempfile.gettempdir()) / "fuzzed-programs"  # those in which something was found
MEMORY = 512 << 20  # bytes of a program, beside what its process shares with this one
MORE = 12  # seeds for each program that is to run: many are refused, which is the other half's business
KERNELS = r"""
#include <cstdio>
#include <cstdlib>
#include <vector>
#define T 4
__constant__ float weights[3];
__device__ int counter;
__global__ void tiled(const float* M, const float* N, float* P, int n) {
  __shared__ float Ms[T][T], Ns[T][T];
  int row = blockIdx.y * T + threadIdx.y, col = blockIdx.x * T + threadIdx.x;
  float sum = 0;
  for (int p = 0; p < (n + T - 1) / T; ++p) {
    Ms[threadIdx.y][threadIdx.x] = row < n && p * T + threadIdx.x < n ? M[row * n + p * T + threadIdx.x] : 0.0f;
    Ns[threadIdx.y][threadIdx.x] = col < n && p * T + threadIdx.y < n ? N[(p * T + threadIdx.y) * n + col] : 0.0f;
    __syncthreads();
    for (int k = 0; k < T; ++k) sum += Ms[threadIdx.y][k] * Ns[k][threadIdx.x];
    __syncthreads();
  }
  if (row < n && col < n) P[row * n + col] = sum;
  atomicAdd(&counter, 1);
}
struct Shape { virtual float area() const = 0; virtual ~Shape() {} };
struct Square : Shape { float a; Square(float x) : a(x) {} float area() const override { return a * a; } };
int main(int argc, char** argv) {
  int n = 7, size = n * n * sizeof(float);
  std::vector<float> h(n * n); for (int i = 0; i < n * n; ++i) h[i] = rand() % 10;
  float *M, *N, *P, *out = (float*)malloc(size);
  cudaMalloc(&M, size); cudaMalloc(&N, size); cudaMalloc(&P, size);
  cudaMemcpy(M, h.data(), size, cudaMemcpyHostToDevice); cudaMemcpy(N, &h[0], size, cudaMemcpyHostToDevice);
  void (*kernel)(const float*, const float*, float*, int) = tiled;
  dim3 block(T, T), grid((n + T - 1) / T, (n + T - 1) / T);
  tiled<<<grid, block>>>(M, N, P, n); kernel<<<grid, block, 0, 0>>>(M, N, P, n);
  if (cudaDeviceSynchronize() != cudaSuccess) { fprintf(stderr, "%s\n", cudaGetErrorString(cudaGetLastError())); return 1; }
  cudaMemcpy(out, P, size, cudaMemcpyDeviceToHost);
  FILE* f = fopen("data.txt", "r"); char line[64]; if (f) { fgets(line, 64, f); fclose(f); }
  Shape* s = new Square(3); printf("%g %g %s\n", out[0], s->area(), argv[0]); delete s;
  free(out); cudaFree(M); cudaFree(N); cudaFree(P);
  return 0;
}
"""


def kind_of(token: str) -> str:
    first = token[0]
    return (
        "a"
        if first.isalpha() or first == "_"
        else "0"
        if first.isdigit()
        else ""
        if first.isspace()
        else first
        if first in "(){}[];#\"'"
        else "+"
    )


def exchanged(text: str, draw: random.Random, most: int = 3) -> str:
    """A few tokens exchanged for others of their kind: such a program is often still one. Brackets stay."""
    tokens = TOKEN.findall(text)
    kinds: dict[str, list[int]] = {}
    for i, token in enumerate(tokens):
        kinds.setdefault(kind_of(token), []).append(i)
    for _ in range(draw.randint(1, most)):
        like = draw.choice([kind for kind in "aaaa00+++" if kind in kinds] or list(kinds))
        odd = ["0", "-1", "2147483647", "1e300", "'\\0'", "x"] if like == "0" else [""]
        of_its_kind = draw.random() < 0.8 or like == "a"
        tokens[draw.choice(kinds[like])] = tokens[draw.choice(kinds[like])] if of_its_kind else draw.choice(odd)
    return "".join(tokens)


ALIKE = tuple(group.split(" ") for group in ("+ - * / % & | ^", "< > <= >= == !=", "+= -= *= /= =", "&& ||"))
WHOLE = ("0", "1", "-1", "3", "33", "1000", "65536", "2147483647")
BROKEN = ("0.0f", "-1.5f", "1e30f", "1e300", "0.1")


def altered(text: str, draw: random.Random) -> str:
    """Numbers and operators exchanged, now and then a name: many such programs still compile, and do something else."""
    tokens = TOKEN.findall(text)
    numbers = [i for i, token in enumerate(tokens) if token[0].isdigit()]
    apart = (i for i in range(1, len(tokens) - 1) if tokens[i - 1].isspace() and tokens[i + 1].isspace())
    operators = [
        (i, alike) for i in apart for alike in ALIKE if tokens[i] in alike
    ]  # a pointer's star has no room around it
    names = [i for i, token in enumerate(tokens) if kind_of(token) == "a"]
    for _ in range(draw.randint(1, 2)):
        chosen = draw.random()
        if numbers and chosen < 0.55:
            at = draw.choice(numbers)
            tokens[at] = draw.choice(BROKEN if "." in tokens[at] or "e" in tokens[at] else WHOLE)
        elif operators and chosen < 0.9:
            at, alike = draw.choice(operators)
            tokens[at] = draw.choice(alike)
        elif names:
            tokens[draw.choice(names)] = tokens[draw.choice(names)]
    return "".join(tokens)


def torn(text: str, draw: random.Random) -> str:
    """Bytes changed, a piece cut out, a piece twice."""
    data = bytearray(text.encode())
    for _ in range(draw.randrange(1, 6)):
        how, at = draw.randrange(3), draw.randrange(max(1, len(data)))
        if how == 0:
            data[at : at + 1] = bytes([draw.randrange(256)])
        elif how == 1:
            del data[at : at + draw.randrange(1, 30)]
        else:
            data[at:at] = data[max(0, at - draw.randrange(1, 40)) : at]
    return data.decode("utf-8", "replace")


def runnable(seed: int) -> str:
    """A program that is meant to run: a sound one with a few tokens exchanged; one in a hundred would never end.

    One that lowers to much code takes LLVM a second: it is drawn in inverse proportion to that."""
    draw = random.Random(seed)
    chosen = draw.random()
    if chosen < 0.01:
        return str(draw.choice(hostile_programs.CLASSES)(draw))[: 1 << 16]
    if chosen < 0.06:
        text = Draw(seed).program() if chosen < 0.03 else KERNELS
    else:
        text = draw.choices(list(_complete), list(_complete.values()))[0]
    return exchanged(text, draw, most=2) if draw.random() < 0.2 else altered(text, draw)


def program(seed: int) -> str:
    """One program in two thousand is a bomb (seconds each), one in ten a long one; the others are small and take 10 ms."""
    draw = random.Random(seed)
    chosen = draw.random()
    if chosen < 0.0005:
        return str(draw.choice(hostile.CLASSES)(draw))[: 1 << 16]
    text = Draw(seed).program() if chosen < 0.06 else KERNELS if chosen < 0.1 else draw.choice(small_programs())
    return str(draw.choice([spoilt, *[exchanged] * 8, torn])(text, draw))


_kept: dict[tuple[str, ...], Headers] = {}
# the small programs that compile as they stand, with their weights; the others are refused whatever is exchanged
_complete: dict[str, float] = {}


def kept_headers(names: list[str]) -> Headers:
    """What known headers declare, loaded once: a program's own declarations go into a copy of the tables.

    Bodies of library functions stay read, as they would be after the first use of them in one program."""
    known = _kept.get(tuple(names))
    if known is None:
        known = _kept[tuple(names)] = header_cache.load_headers(names)
    found = known.declared
    declared = Declared(found.entities.copy(), found.names.copy(), set(found.types), set(found.templates))
    return Headers(known.macros, declared, list(known.files))


def import_all() -> None:
    """What a program's process imports: its forks have it."""
    for found in pkgutil.walk_packages(everything.__path__, everything.__name__ + "."):
        import_module(found.name)
    for name in ("tilewise.system.sandbox", "llvmlite.binding", *NEEDS.values()):
        import_module(name)
    target = WebAssembly()  # LLVM makes its tables of instructions when it is first used
    target.load("define i32 @start() {\n  ret i32 0\n}\n", {}, "start", ("i32",))


def warm(processes: int) -> None:
    """Every set of headers that the small programs include, read once: the processes that follow have them."""
    import_all()
    sets: dict[tuple[str, ...], None] = {}

    def note(names: list[str]) -> Headers:
        sets[tuple(names)] = None
        raise TilewiseError

    loaded, translation_unit.load_headers = translation_unit.load_headers, note
    folder = Path(tempfile.mkdtemp(prefix="tilewise-fuzz-", dir=ROOM))
    for text in (*small_programs(), KERNELS, Draw(0).program()):
        (folder / "a.cu").write_text(text)
        through_the_front_end(folder / "a.cu")
    shutil.rmtree(folder, ignore_errors=True)
    translation_unit.load_headers = loaded
    with multiprocessing.Pool(processes) as pool:  # to the disk
        pool.map(_read_once, list(sets), chunksize=1)
    for names in sets:
        kept_headers(list(names))
    translation_unit.load_headers = kept_headers
    with multiprocessing.Pool(processes) as pool:
        lengths = pool.map(_length_of_code, small_programs(), chunksize=4)
    translation_unit.load_headers = loaded
    _complete.update((text, 1 / n) for text, n in zip(small_programs(), lengths, strict=True) if n)


def _read_once(names: tuple[str, ...]) -> None:
    header_cache.load_headers(list(names))


def _length_of_code(text: str) -> int:
    """Of the LLVM text; 0 of a program that does not compile."""
    folder = Path(tempfile.mkdtemp(prefix="tilewise-fuzz-", dir=ROOM))
    (folder / "a.cu").write_text(text)
    signal.signal(signal.SIGPROF, late)
    length, _ = through_the_front_end(folder / "a.cu")
    shutil.rmtree(folder, ignore_errors=True)
    return length


def late(_signal: int, _frame: object) -> None:
    raise TimeoutError


def through_the_front_end(path: Path, seconds: float = 20.0) -> tuple[int, str]:
    """The length of its lowered code, 0 if it was refused, and what came out but should not. More processor time than
    `seconds` is a fault, too."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        return len(lowered(path)), ""
    except (TilewiseError, RecursionError):  # the latter is reported as a program that is nested too deep
        return 0, ""
    except Exception:
        return 0, traceback.format_exc(limit=-3)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def forked(path: Path, options: Options, output: Path | None = None) -> tuple[int, bytes, resource.struct_rusage]:
    """Run a program in a fork of this process: its status, its report, what it used. `output`: a file for its stdout
    and stderr."""
    reader, writer = os.pipe()
    settings = {
        "path": str(path), "name": "./program", "arguments": [], "report": writer, "parent": os.getpid(), "options": asdict(options), "dump": None,
        "began": time.monotonic(),
    }  # fmt: skip
    child = os.fork()
    if child == 0:
        os.close(reader)
        _child(path.parent, json.dumps(settings), output)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        report = pipe.read()
    _, status, used = os.wait4(child, 0)
    return status, report, used


def executed(path: Path, target: str, seconds: float = 1.0) -> tuple[str, str]:
    """How the program's process ended, and what is wrong with that."""
    options = Options(
        seconds=seconds, memory=MEMORY + resident(), output=1 << 20, folder=str(path.parent), target=target,
        sandbox=OFF if target == WASM else REQUIRED,
    )  # fmt: skip
    status, data, used = forked(path, options)
    if os.WIFSIGNALED(status):
        return "signal", f"killed by {signal.Signals(os.WTERMSIG(status)).name}"
    if not data:
        return "silent", f"no report, status {os.waitstatus_to_exitcode(status)}"
    text = data.removeprefix(ANNOUNCED).decode("utf-8", "replace")
    try:
        report = json.loads(text)
    except json.JSONDecodeError:
        return "broken", f"a report that is no JSON: {text[:900]}"
    found = [] if report["ended"] in ENDS else [f"{report['ended']}: {report['message'][-1500:]}"]
    found += [note for note in report["notes"] if note.startswith("a check at the end failed")]
    if used.ru_utime + used.ru_stime > seconds + 3:
        found.append(f"{used.ru_utime + used.ru_stime:.1f} s of processor time")
    if used.ru_maxrss * 1024 > options.memory + (900 << 20):
        found.append(f"{used.ru_maxrss >> 10} MiB")
    return report["ended"], "; ".join(found)


def _child(folder: Path, settings: str, output: Path | None) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    shown = null if output is None else os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
    for descriptor, given in enumerate((null, shown, shown)):
        os.dup2(given, descriptor)
    allowed = (
        str(folder),
        sys.prefix,
        sys.base_prefix,
        sys.pycache_prefix or sys.prefix,
        "/proc/self/",
        "/sys/",
        str(Path(program_child.__file__).parents[3]),
    )

    def hear(event: str, arguments: tuple[object, ...]) -> None:
        outside = event in FILES and isinstance(arguments[0], str) and not _inside(str(arguments[0]), allowed)
        if outside or event in NEVER:
            os.write(json.loads(settings)["report"], json.dumps({
                "ended": "outside", "message": f"{event} {arguments[0]}", "notes": [],
            }).encode())  # fmt: skip
            os._exit(99)

    try:
        sys.argv = ["program_child", settings]
        sys.addaudithook(hear)
        program_child.main()
    finally:
        os._exit(98)


def _inside(path: str, allowed: tuple[str, ...]) -> bool:
    path = os.path.abspath(path)
    return path.startswith(allowed) or path in (os.devnull, "/proc/cpuinfo") or ".cache" in path


def tried(path: Path, seed: int, how: str, target: str) -> tuple[str, str]:
    """How one program went, and what is wrong with it. What is to run and is refused is not counted as run."""
    text = program(seed) if how == "front" else runnable(seed)
    path.write_text(text, encoding="utf-8", errors="replace")
    length, wrong = through_the_front_end(path)
    if how == "front" or wrong or not length:
        return ("front" if how == "front" else "not run"), wrong
    return executed(path, target)


def keep(path: Path, line: str, name: str) -> None:
    """Printed and saved at once: a run that is cut off has lost nothing it found."""
    print(line, flush=True)
    KEPT.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, KEPT / f"{name}.cu")


def work(seeds: range, wanted: int, how: str, target: str, until: float, out: object) -> None:
    folder = Path(tempfile.mkdtemp(prefix="tilewise-fuzz-", dir=ROOM))
    (folder / "data.txt").write_text("1 2 3\n")
    path = folder / "spoilt.cu"
    counts: dict[str, int] = {}
    found: list[str] = []
    signal.signal(signal.SIGPROF, late)
    translation_unit.load_headers = kept_headers
    gc.freeze()
    gc.disable()  # a program's tree is large and short-lived: looking through it as it grows takes half the time
    for number_of_it, seed in enumerate(seeds):
        if number_of_it % 100 == 99:
            gc.collect()
        if number_of_it % 500 == 499:  # a campaign that is cut off has counted something
            print(json.dumps({"so far": counts, "found": len(found)}), flush=True)
        if time.time() > until or len(found) > 20 or sum(counts.values()) - counts.get("not run", 0) >= wanted:
            break
        ended, wrong = tried(path, seed, how, target)
        counts[ended] = counts.get(ended, 0) + 1
        if wrong:
            found.append(f"seed {seed} ({how}): {wrong}")
            keep(path, found[-1], f"{how}-{seed}")
    left = sorted(f.name for f in folder.iterdir() if f != path)
    if left != ["data.txt"]:
        found.append(f"files were written: {left}")
        print(found[-1], flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    out.put((counts, found))  # type: ignore[attr-defined]


def many(
    front: int, run: int, processes: int, seconds: float, first: int, target: str
) -> tuple[dict[str, int], list[str]]:
    """Both kinds over so many processes; counts by how they ended, and what was found."""
    warm(processes)
    until = time.time() + seconds
    out: multiprocessing.Queue[tuple[dict[str, int], list[str]]] = multiprocessing.Queue()
    counts: dict[str, int] = {}
    found: list[str] = []
    for how, total in (("run", run), ("front", front)):
        began = first if how == "front" else first + (1 << 40)
        step = -(-total // processes)
        workers = [
            multiprocessing.Process(
                target=work,
                args=(range(began + i * step * MORE, began + (i + 1) * step * MORE), step, how, target, until, out),
            )
            for i in range(processes)
        ]
        for worker in workers:
            worker.start()
        for _ in workers:
            more, wrong = out.get()
            found += wrong
            for name, n in more.items():
                counts[name] = counts.get(name, 0) + n
        for worker in workers:
            worker.join()
        print(
            json.dumps(
                {"after": how, "counts": counts, "found": len(found), "seconds": round(time.time() - until + seconds)}
            ),
            flush=True,
        )
    return counts, found


if __name__ == "__main__":
    front, run, processes = (int(argument) for argument in sys.argv[1:4])
    seed = int(sys.argv[5]) if len(sys.argv) > 5 else time.time_ns() % (1 << 30)
    print(json.dumps({"seed": seed}), flush=True)
    counted, wrong = many(front, run, processes, float(sys.argv[4]), seed, NATIVE if sys.argv[6:] == [NATIVE] else WASM)
    print(json.dumps({"seed": seed, **counted, "found": len(wrong)}))
    sys.exit(1 if wrong else 0)

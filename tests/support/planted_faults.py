"""Faults planted in programs of other people: is each named at its line, with its variable and what mends it?

A fault is an edit of one line or more of a program of `public_files.txt`; it was written before it was first run, with
what a finding must say. The programs are not part of this repository: `python tests/support/planted_faults.py FOLDER`
reads FOLDER/owner+name/path, runs each fault by `tilewise run --json` and prints what was not named; `… FOLDER TEXT
second` (or `third`): those of a later draw, here those of the first."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

OUT, RACE, UNSET, COPY = "out-of-bounds|silent-overrun", "race", "uninitialised-read", "copy"
BOUND = "below|length|only where|inside|at 0 or above"
BARRIER, FIRST = "__syncthreads", "first value|a value where"
INTO, BACK, WAIT = "HostToDevice|nothing was", "DeviceToHost", "Synchronize"


@dataclass(frozen=True)
class Fault:
    what: str
    edits: tuple[tuple[int, str, str], ...]  # line, pattern, replacement
    kinds: str
    lines: tuple[int, ...]
    names: str
    advice: str


def fault(what: str, line: int, pattern: str, new: str, kinds: str, lines: int | tuple[int, ...], names: str,
          advice: str = "", *more: tuple[int, str, str]) -> Fault:  # fmt: skip
    places = lines if isinstance(lines, tuple) else (lines,)
    return Fault(what, ((line, pattern, new), *more), kinds, places, names, advice)


PROGRAMS = {
    "LuigiGalasso+CUDA_examples/dot.cu": [
        fault("barrier left out", 20, ".*", "", RACE, 26, "cache", BARRIER),
        fault("barrier of the loop left out", 27, ".*", "", RACE, 26, "cache", BARRIER),
        fault("<= for <", 14, "<N", "<=N", OUT, 15, "a|b|dev_a|dev_b", BOUND),
        fault("sum without a value", 13, " = 0", "", UNSET, (15, 18), "temp", FIRST),
        fault("input not copied", 53, ".*", "", UNSET, 15, "a|dev_a", INTO),
        fault("copy direction", 53, "HostToDevice", "DeviceToHost", COPY, 53, "dev_a|a", "HostToDevice"),
        fault("tile too small", 9, r"Block\]", "Block/2]", OUT, 18, "cache", BOUND),
        fault("result not copied", 59, "cudaMemcpy.*", "", UNSET, 63, "partial_c", BACK),
        fault("malloc without sizeof", 41, r"N\*sizeof\(float\)", "N", f"{OUT}|small-allocation", (41, 50), "a",
              "sizeof|length"),
        fault("barrier in a branch", 25, "$", "{", "divergent-barrier", 27, "", "out of the branch",
              (27, ";.*", "; }")),
        fault("free for cudaFree", 69, "cudaFree", "free", "wrong-free", 69, "dev_a", "cudaFree"),
        fault("2048 threads", 57, "threadsPerBlock", "2048", "launch", 57, "", "1024"),
        fault("sum of all blocks", 32, r"c\[blockIdx.x\] =", "c[0] +=", RACE, 32, "c|dev_partial_c", "atomicAdd"),
    ],
    "PrathameshChatorikar+CUDA-Programming/bitonicSortKernel.cu": [
        fault("grid of 0 blocks", 28, "1024", "2048", "launch", 33, "", "grid|block"),
        fault("input not copied", 45, "cudaMemcpy.*", "", UNSET, (12, 18), "data|d_data", INTO),
        fault("both threads exchange", 10, ">", "!=", RACE, tuple(range(12, 22)), "data|d_data", ""),
        fault("cudaMalloc without sizeof", 44, r"SIZE \* sizeof\(int\)", "SIZE", f"{OUT}|small-allocation|{COPY}",
              (44, 45, 12, 13, 14), "d_data|data", "sizeof|length|bytes"),
        fault("freed twice", 50, "$", "cudaFree(d_data);", "double-free", 50, "d_data", "once"),
        fault("copy arguments exchanged", 49, "h_data, d_data", "d_data, h_data", COPY, 49, "h_data|d_data", ""),
    ],
    "Yatish04+cuda_programs/vector_add.cu": [
        fault("no guard", 16, "idx < n", "true", OUT, 17, "a|b|c|d_a|d_b|d_c", BOUND),
        fault("input not copied", 48, "cudaMemcpy.*", "", UNSET, 17, "b|d_b", INTO),
        fault("cudaMalloc left out", 45, "cudaMalloc.*", "", "null-pointer", (17, 54), "c|d_c", "cudaMalloc"),
        fault("host pointer to a kernel", 54, r"\(d_a", "(a", "host-pointer-on-the-device", (17, 54), "a", "cudaM|d_a"),
        fault("card's pointer on the host", 59, ", c, n", ", d_c, n", "device-pointer-on-the-host", (23, 59), "c|d_c",
              "cudaMemcpy"),
        fault("copy direction", 57, "DeviceToHost", "HostToDevice", COPY, 57, "c|d_c", "DeviceToHost"),
        fault("<= on the host", 22, "<", "<=", OUT, 23, "a|b|c", BOUND),
        fault("freed before the launch", 50, "int", "cudaFree(d_a); int", "use-after-free", (17, 54), "a|d_a", "last"),
    ],
    "altairBASIC+CUDA-c-/saxpysolution.cu": [
        fault("no wait for managed memory", 52, "cuda.*", "", "not-synchronised", 56, "c", WAIT),
        fault("<= for <", 11, "< N", "<= N", OUT, 12, "a|b|c", BOUND),
        fault("cudaMallocManaged left out", 29, "cuda.*", "", f"{UNSET}|null-pointer", 35, "b", "value|memory"),
        fault("input without values", 34, "a.*", "", UNSET, 12, "a", ""),
        fault("bytes without sizeof", 18, r" \* sizeof\(int\)", "", f"{OUT}|small-allocation",
              (28, 34, 35, 36), "a|b|c", "sizeof|length"),
    ],
    "betogaona7+CUDA/cube.cu": [
        fault("too many threads", 35, "SIZE>", "SIZE + 32>", OUT, 7, "d_in", BOUND),
        fault("arguments exchanged", 35, "d_out, d_in", "d_in, d_out", UNSET, 7, "d_in|d_out", ""),
        fault("result not copied", 38, "cudaMemcpy.*", "", UNSET, 42, "h_out", BACK),
        fault("cudaMalloc left out", 29, "cudaMalloc.*", "", f"{UNSET}|null-pointer", (8, 35), "d_out", "value|memory"),
        fault("copy of too few bytes", 32, "BYTES", "SIZE", UNSET, 7, "d_in", "sizeof|96 of its 384"),
        fault("card's pointer on the host", 42, "h_out", "d_out", "device-pointer-on-the-host", 42, "d_out",
              "cudaMemcpy"),
        fault("<= on the host", 41, "<", "<=", OUT, 42, "h_out", BOUND),
    ],
    "khoa1999+Cuda-learn/transpose.cu": [
        fault("barrier left out", 18, "__.*", "", RACE, 19, "sharedMemory", BARRIER),
        fault("tile too small", 5, r"SIZE\]\[", "SIZE - 1][", OUT, 17, "sharedMemory", BOUND),
        fault("grid rounded down", 2, "16", "18", f"{UNSET}|uncovered", (28, 46, 47), "b|d_b|output", "round|grid"),
        fault("wrong row length", 16, r"\*N", "*(N+1)", OUT, 19, "output|d_b", BOUND),
        fault("copied back too early", 46, "tr", "cudaMemcpy(b,d_b,size,cudaMemcpyDeviceToHost);tr",
              "not-copied-back|uninitialised-read", (46, 28), "b|d_b", "after", (47, ".*", "")),
    ],
    "sandeep-skb+cuda_programs/conv2d.cu": [
        fault("barrier left out", 31, "__.*", "", RACE, 38, "sh_din", BARRIER),
        fault("no lower bound", 24, "row_i >= 0  && ", "", OUT, 26, "d_in", BOUND),
        fault("sum without a value", 33, " = 0.0", "", UNSET, (38, 43), "output", FIRST),
        fault("tile read past its edge", 35, r"tx.*h\)", "true)", OUT, 38, "sh_din", BOUND),
        fault("no wait for managed memory", 108, "cuda.*", "", "not-synchronised", 119, "d_out", WAIT),
        fault("filter without values", 101, "init.*", "", UNSET, 38, "d_filter", ""),
    ],
    "chamchiking+cuda_convolution2dGPUvsCPU/convolution.cu": [
        fault("no guard of rows", 24, "row < numBRows && ", "", OUT, (27, 30), "A|B|d_A|d_B", BOUND),
        fault("sum without a value", 23, " = 0.0", "", UNSET, (27, 30), "sum", FIRST),
        fault("arguments exchanged", 118, "d_B, d_C", "d_C, d_B", f"{OUT}|{UNSET}", (27, 30), "B|C|d_B|d_C", ""),
        fault("grid too small", 113, r"SIZE\),", "SIZE) / 2,", f"{UNSET}|uncovered", (118, 140, 172), "h_B|d_B|B",
              "grid|covers|threads"),
        fault("freed twice", 199, "$", " free(h_A);", "double-free", 199, "h_A", "once"),
        fault("filter without values", 95, "random.*", "", UNSET, (27, 109, 163), "h_C|C|d_C", ""),
    ],
    "lizziew+cuda_playground/add_block.cu": [
        fault("two blocks do the same", 29, "<1,", "<2,", RACE, 10, "y", "block"),
        fault("cudaMallocManaged left out", 20, "cuda.*", "", f"{UNSET}|null-pointer", 25, "y", "value|memory"),
    ],
    "Randikaviraj+CUDA-C/matmul.cu": [
        fault("wrong row length", 32, "COLS2", "COLS1", OUT, 32, "matC_cuda", ""),
        fault("sum without a value", 27, "=0", "", UNSET, (30, 32), "prod", FIRST),
        fault("no guard of columns", 25, " && col < COLS2", "", f"{OUT}|{RACE}", (30, 32),
              "matA_cuda|matB_cuda|matC_cuda", ""),
        fault("grid of 0 blocks", 111, r"ceil\(ROWS1/\(float\)16\)", "ROWS1/16", "launch", 112, "", "grid|round"),
        fault("copy arguments exchanged", 116, "matC,matC_cuda", "matC_cuda,matC", COPY, 116, "matC|matC_cuda", ""),
    ],
    "LuigiGalasso+CUDA_examples/convolution2d.cu": [
        fault("constant memory not copied", 121, "cuda.*", "", UNSET, (34, 35), "mask", "cudaMemcpyToSymbol"),
        fault("no lower bound", 30, r"\(start_r \+ i\) >= 0 && ", "", OUT, 34, "matrix|d_matrix", BOUND),
        fault("grid too small", 125, r"\(N \+ .*S;", "N / THREADS - 1;", f"{UNSET}|uncovered", (89, 132, 135),
              "result|d_result", "grid|covers|threads"),
        fault("free for delete[]", 143, r"delete\[\] matrix", "free(matrix)", "wrong-free", 143, "matrix",
              r"delete\[\]"),
        fault("constant memory too small", 11, r"7 \* 7", "7 * 6", f"{COPY}|{OUT}", (121, 34, 35), "mask", ""),
    ],
    "pansaretejal7177+CUDA-Codes/vecadd.cu": [
        fault("all threads store to one cell", 19, r"result\[i\]", "result[0]", RACE, 19, "result|c", ""),
        fault("no wait for managed memory", 73, "cudaDeviceSynchronize..", "cudaSuccess", "not-synchronised", 27,
              "vector|c", WAIT),
    ],
}  # fmt: skip


def edited(text: str, planted: Fault) -> str:
    lines = text.splitlines()
    for line, pattern, new in planted.edits:
        changed = re.sub(pattern, lambda _, new=new: new, lines[line - 1], count=1)
        if changed == lines[line - 1]:
            raise ValueError(f"line {line}: {pattern} is not there")
        lines[line - 1] = changed
    return "\n".join(lines) + "\n"


def findings(path: Path) -> list[dict]:
    ran = subprocess.run(
        [sys.executable, "-m", "tilewise", "run", path.name, "--json", "--limit-time", "30"], cwd=path.parent,
        capture_output=True, stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    text = ran.stderr.decode(errors="replace")
    return json.loads(text[text.index("{") :])["findings"] if "{" in text else []


def named(planted: Fault, found: list[dict]) -> bool:
    names = set(planted.names.split("|"))
    return any(
        one["kind"] in planted.kinds.split("|") and one["line"] in planted.lines
        and (not planted.names or one["array"] in names or names & set(re.findall(r"\w+", one["message"])))
        and re.search(planted.advice, one["hint"] + one["message"])
        for one in found
    )  # fmt: skip


def main(folder: Path, only: str = "", draw: str = "") -> None:
    total = right = 0
    programs = importlib.import_module(f"planted_faults_{draw}").PROGRAMS if draw else PROGRAMS
    for program, faults in programs.items():
        source = folder / program
        for planted in faults:
            if only not in f"{program} {planted.what}":
                continue
            with TemporaryDirectory() as place:
                copy = Path(place) / program
                for header in (folder / program.partition("/")[0]).rglob("*"):
                    if header.suffix not in (".h", ".hpp", ".cuh", ".cpp"):
                        continue
                    beside = Path(place) / header.relative_to(folder)
                    beside.parent.mkdir(parents=True, exist_ok=True)
                    beside.write_bytes(header.read_bytes())
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_text(edited(source.read_text(errors="replace"), planted))
                found = findings(copy)
            total += 1
            if named(planted, found):
                right += 1
                continue
            print(f"{program}: {planted.what}")
            for one in found[:4]:
                print(f"    {one['kind']} {one['line']} {one['array']}: {one['message'][:100]} | {one['hint'][:100]}")
    print(f"{right} of {total} faults of {len({f.what for fs in programs.values() for f in fs})} kinds are named")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:4])

"""Ten wrong attempts at each exercise: what a student writes instead, the cause that a hint must name, and its line.

Written before any of them was run; two were replaced, because they are right: a fill left out beside another fill of
INFINITY (15), and n for k where the exercise has k = n (14). Causes and lines with | are alternatives; an empty line
means that the fault is in
no single line, so the hint names cells of P. `python tests/support/wrong_attempts.py` prints what was named."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass

BARRIER = "        __syncthreads();\n"
USE, AGAIN = BARRIER + "        for (int i", BARRIER + "    }\n"
OUT, OVER = "out-of-bounds", "silent-overrun"
BEYOND = f"{OUT}|{OVER}"
ROW, COL = "blockIdx.y * TILE_WIDTH + threadIdx.y", "blockIdx.x * TILE_WIDTH + threadIdx.x"
GUARD, STORE = "row < m && col < n", "P[row * n + col]"
M_AT, N_AT = "M[row * k + i]", "N[i * n + col]"
LAST = "    if (row < m && col < n)\n        P"

SAME = {"product": "wrong-product"}  # the item that lost its points, where the reference is a program

NAIVE = {
    "row in its block": (ROW, "threadIdx.y", "uncovered", ""),
    "col in its block": (COL, "threadIdx.x", "uncovered", ""),
    "row without the width": (ROW, "blockIdx.y + threadIdx.y", "uncovered", ""),
    "col without the width": (COL, "blockIdx.x + threadIdx.x", "uncovered", ""),
    "row of the block": (ROW, "blockIdx.y * TILE_WIDTH", "uncovered", ""),
    "row from x": (ROW, "blockIdx.x * TILE_WIDTH + threadIdx.y", "uncovered", ""),
    "col from y": (COL, "blockIdx.x * TILE_WIDTH + threadIdx.y", "uncovered", ""),
    "factors exchanged": (ROW, "threadIdx.y * TILE_WIDTH + blockIdx.y", "uncovered", ""),
    "one column less": (GUARD, "row < m && col < n - 1", "uncovered", ""),
    "guard reversed": (GUARD, "row > m && col > n", "uncovered", ""),
    "k - 1 products": ("i < k", "i < k - 1", "wrong-product", ""),
    "k + 1 products": ("i < k", "i <= k", BEYOND, "sum +="),
    "= for +=": ("sum += ", "sum = ", "wrong-product", ""),
    "sum from 1": ("float sum = 0", "float sum = 1", "wrong-product", ""),
    "sum from nothing": ("float sum = 0;", "float sum;", "uninitialised-read", "sum"),
    "from the second": ("int i = 0", "int i = 1", "wrong-product", ""),
    "+ for *": (f"{M_AT} * N", f"{M_AT} + N", "wrong-product", ""),
    "whole numbers": ("float sum = 0;", "int sum = 0;", "wrong-product", ""),
    "N twice": (M_AT, "N[row * k + i]", f"{BEYOND}|wrong-product", "sum +="),
    "P added to": (f"{STORE} = sum", f"{STORE} += sum", "uninitialised-read", "P[row"),
    "only rows": (GUARD, "row < m", BEYOND, "sum +=|P[row"),
    "only columns": (GUARD, "col < n", OUT, "sum +=|P[row"),
    "m and n exchanged": (GUARD, "row < n && col < m", f"uncovered|{BEYOND}", "|"),
    "<= for <": (GUARD, "row <= m && col <= n", BEYOND, "sum +=|P[row"),
    "or for and": (GUARD, "row < m || col < n", BEYOND, "sum +=|P[row"),
    "no guard": (f"if ({GUARD}) ", "", BEYOND, "sum +=|P[row"),
    "one bound for all": (GUARD, "row * n + col < m * n", f"{BEYOND}|race.global", "sum +=|P[row"),
    "a name misspelt": ("int col", "int cal", "refused", "col <"),
    "P by k": (STORE, "P[row * k + col]", f"{BEYOND}|uncovered", "P[row|"),
    "P transposed": (STORE, "P[col * n + row]", BEYOND, "P[col"),
    "N by k": (N_AT, "N[i * k + col]", f"wrong-product|{BEYOND}", "N[i * k|"),
    "M by n": (M_AT, "M[row * n + i]", f"{BEYOND}|wrong-product", "M[row * n|"),
    "N transposed": (N_AT, "N[col * n + i]", BEYOND, "N[col"),
    "M transposed": (M_AT, "M[i * k + row]", BEYOND, "M[i"),
    "two subscripts": (STORE, "P[row][col]", "refused", "P[row][col]"),
    "no semicolon": (f"{N_AT};", N_AT, "refused", "P[row|sum +="),
}

TILED = {
    "no first barrier": (USE, USE.removeprefix(BARRIER), "race.RAW", "sum +="),
    "first for a warp": (USE, USE.replace("threads", "warp"), "race.RAW", "sum +="),
    "no second barrier": (AGAIN, AGAIN.removeprefix(BARRIER), "race.WAR", "Mds[ty][tx] =|Nds[ty][tx] ="),
    "second for a warp": (AGAIN, AGAIN.replace("threads", "warp"), "race.WAR", "[ty][tx] ="),
    "barrier for some": (USE, "        if (col < n)\n    " + USE, "divergent-barrier", "__syncthreads"),
    "return before it": (
        "    float sum = 0;\n", "    if (row >= m || col >= n)\n        return;\n    float sum = 0;\n",
        "divergent-barrier|uninitialised-read|wrong-product", "__syncthreads|sum +=|",
    ),
    "tx <= k": ("tx < k)", "tx <= k)", OVER, "Mds[ty][tx] = M"),
    "row <= m": ("row < m && p", "row <= m && p", OUT, "M[row * k"),
    "ty <= k": ("ty < k && col", "ty <= k && col", OUT, "N[(p"),
    "col <= n": ("col < n)\n            Nds", "col <= n)\n            Nds", BEYOND, "Nds[ty][tx] = N"),
    "store row <= m": (LAST, LAST.replace("row <", "row <="), OUT, "P[row"),
    "store col <= n": (LAST, LAST.replace("col <", "col <="), BEYOND, "P[row"),
    "store unguarded": (LAST, "    P", OUT, "P[row"),
    "M not filled": ("        else\n            Mds[ty][tx] = 0;\n", "", "uninitialised-read|wrong-product", "sum +=|"),
    "N not filled": ("        else\n            Nds[ty][tx] = 0;\n", "", "uninitialised-read|wrong-product", "sum +=|"),
    "rounded down": ("(k + TILE_WIDTH - 1) / TILE_WIDTH", "k / TILE_WIDTH", "wrong-product", ""),
    "phases of m": ("(k + TILE_WIDTH - 1) / TILE_WIDTH", "(m + TILE_WIDTH - 1) / TILE_WIDTH", "wrong-product", ""),
    "Mds transposed": ("Mds[ty][i] *", "Mds[i][ty] *", "wrong-product", ""),
    "Nds transposed": ("* Nds[i][tx]", "* Nds[tx][i]", "wrong-product", ""),
    "M by n": ("M[row * k + p", "M[row * n + p", f"{BEYOND}|wrong-product", "M[row|"),
    "N by k": ("+ ty) * n + col", "+ ty) * k + col", f"wrong-product|{BEYOND}", "N[(p|"),
    "P by k": (STORE, "P[row * k + col]", f"{BEYOND}|uncovered", "P[row|"),
    "= for +=": ("sum += Mds", "sum = Mds", "wrong-product", ""),
    "one product less": ("i < TILE_WIDTH", "i < TILE_WIDTH - 1", "wrong-product", ""),
    "one product more": ("i < TILE_WIDTH", "i <= TILE_WIDTH", BEYOND, "sum +="),
    "col from y": ("blockIdx.x * TILE_WIDTH + tx", "blockIdx.x * TILE_WIDTH + ty", "uncovered|race.global", "P[row|"),
    "M one further": ("M[row * k + p * TILE_WIDTH", "M[row * k + p", "wrong-product", ""),
    "N one further": ("N[(p * TILE_WIDTH + ty)", "N[(p + ty)", "wrong-product", ""),
    "Mds of a thread": ("__shared__ float Mds", "float Mds", "uninitialised-read", "sum +="),
    "Nds too narrow": (
        "Nds[TILE_WIDTH][TILE_WIDTH];", "Nds[TILE_WIDTH][TILE_WIDTH - 1];", f"{BEYOND}|race.WAW", "Nds[ty][tx]|sum +=",
    ),
    "sum from nothing": ("float sum = 0;", "float sum;", "uninitialised-read", "sum +="),
    "Nds stored straight": ("Nds[tx][ty] = N", "Nds[ty][tx] = N", "wrong-product|race.WAW|uninitialised-read", "|"),
    "N by tx": ("TILE_WIDTH + ty) * k", "TILE_WIDTH + tx) * k", f"{BEYOND}|wrong-product", "N[(blockIdx|"),
    "best from 0": ("best = INFINITY", "best = 0", "wrong-product", ""),
    "max for min": ("fminf", "fmaxf", "wrong-product", ""),
    "* for +": ("Mds[ty][i] + Nds", "Mds[ty][i] * Nds", "wrong-product", ""),
    "sum for min": ("best = fminf(best, Mds[ty][i] + Nds[i][tx])", "best += Mds[ty][i]", "wrong-product", ""),
    "- for +": ("Mds[ty][i] + Nds", "Mds[ty][i] - Nds", "wrong-product", ""),
    "best: no first barrier": (USE, USE.removeprefix(BARRIER), "race.RAW", "best ="),
}  # fmt: skip

OTHERS = {
    "12": [
        (USE, USE.removeprefix(BARRIER), "race.RAW", "one +=|two +="),
        (AGAIN, AGAIN.removeprefix(BARRIER), "race.WAR", "Mds[ty][tx] =|Nds[ty]"),
        ("blockIdx.x * 2 * TILE_WIDTH + tx", "blockIdx.x * TILE_WIDTH + tx", "uncovered|race.global", "P[row|"),
        ("if (row < m && col + TILE_WIDTH < n)", "if (row < m)", BEYOND, "= two"),
        ("= two;", "= one;", "wrong-product", ""),
        ("Nds[TILE_WIDTH][2 * TILE_WIDTH]", "Nds[TILE_WIDTH][TILE_WIDTH]", f"{BEYOND}|race.WAW", "[tx + |two +="),
        ("col + TILE_WIDTH < n ? N", "col < n ? N", BEYOND, "Nds[ty][tx + TILE_WIDTH] ="),
        ("N[down * n + col + TILE_WIDTH]", "N[down * n + col]", "wrong-product", ""),
        ("(n + 2 * TILE_WIDTH - 1) / (2 * TILE_WIDTH)", "n / (2 * TILE_WIDTH)", "uncovered", ""),
        ("Nds[i][tx + TILE_WIDTH]", "Nds[i][tx]", "wrong-product", ""),
    ],
    "13": [
        (USE, USE.removeprefix(BARRIER), "race.RAW", "sum[r][c] +="),
        (AGAIN, AGAIN.removeprefix(BARRIER), "race.WAR", "Mds[h|Nds[ty]"),
        ("h < 2", "h < 1", "uninitialised-read", "sum[r][c] +="),
        ("if (row < m && col < n)\n", "if (row < m)\n", BEYOND, "P[row"),
        ("blockIdx.y * SIDE", "blockIdx.y * TILE_WIDTH", "uncovered|race.global", "P[row|"),
        ("sum[2][2] = {{0, 0}, {0, 0}}", "sum[2][2]", "uninitialised-read", "sum[r][c] +="),
        ("Mds[r * TILE_WIDTH + ty][i]", "Mds[ty][i]", "wrong-product", ""),
        ("Nds[i][c * TILE_WIDTH + tx]", "Nds[i][tx]", "wrong-product", ""),
        ("row < m && across < k ?", "across < k ?", OUT, "M[row"),
        ("down < k && col < n ?", "down < k ?", BEYOND, "N[down"),
    ],
    "16": [
        (USE, USE.removeprefix(BARRIER), "race.RAW", "mine[i] ="),
        (BARRIER + "        tile", "        tile", "race.WAR", "tile[ty][tx] = p"),
        (BARRIER + "        for (int i = 0; i < TILE_WIDTH; ++i)\n            sum",
         "        for (int i = 0; i < TILE_WIDTH; ++i)\n            sum", "race.RAW", "sum +="),
        (AGAIN, AGAIN.removeprefix(BARRIER), "race.WAR", "tile[ty][tx] = row"),
        ("= tile[ty][i]", "= tile[i][ty]", "wrong-product", ""),
        ("* tile[i][tx]", "* tile[tx][i]", "wrong-product", ""),
        ("row < m && p", "row <= m && p", OUT, "tile[ty][tx] = row"),
        ("ty < k && col", "ty <= k && col", OUT, "tile[ty][tx] = p"),
        (LAST, LAST.replace("row < m && ", ""), OUT, "P[row"),
        ("mine[TILE_WIDTH]", "mine[TILE_WIDTH - 1]", OUT, "mine[i]"),
    ],
    "17": [
        ("    cudaMemcpy(Md, M, m * k * sizeof(float), cudaMemcpyHostToDevice);\n", "", "uninitialised-read", "M[row"),
        ("cudaMemcpyDeviceToHost", "cudaMemcpyHostToDevice", "copy", "cudaMemcpy(P"),
        ("&Md, m * k * sizeof(float)", "&Md, m * k", "small-allocation", "&Md, m * k"),
        ("    cudaFree(Pd);\n", "", "leak", "&Pd"),
        ("    cudaFree(Nd);\n", "    cudaFree(Md);\n", "double-free", "cudaFree(Md)"),
        (">>>(Md, Nd, Pd", ">>>(M, N, P", "host-pointer-on-the-device", "multiply<<<|M[row"),
        ("((n + TILE_WIDTH - 1) / TILE_WIDTH", "(n / TILE_WIDTH", "uncovered|program|uninitialised-read", "|"),
        ("    cudaMemcpy(P, Pd, m * n * sizeof(float), cudaMemcpyDeviceToHost);\n", "",
         "not-copied-back|uninitialised-read|program", "|"),
        ("cudaMemcpy(P, Pd, m * n * sizeof(float)", "cudaMemcpy(P, Pd, m * n", "uninitialised-read|copy|program", "|"),
        ("block(TILE_WIDTH, TILE_WIDTH)", "block(TILE_WIDTH)", "uncovered|uninitialised-read|program", "|"),
    ],
    "18": [
        ("    cudaMemcpy(Md, M, m * k * sizeof(float), cudaMemcpyHostToDevice);\n", "", "uninitialised-read", "M[row"),
        ("cudaMemcpyDeviceToHost", "cudaMemcpyHostToDevice", "copy", "cudaMemcpy(P"),
        ("malloc(m * n * sizeof(float))", "malloc(m * n)", "small-allocation|copy", "malloc(m * n)|cudaMemcpy(P"),
        ("    free(N);\n", "", "leak", "malloc(k * n"),
        ("    free(N);\n", "    free(M);\n", "double-free", "free(M)"),
        (">>>(Md, Nd, Pd", ">>>(M, N, P", "host-pointer-on-the-device", "multiply<<<|M[row"),
        ("P[m * n - 1]", "P[m * n]", OUT, "P[m * n]"),
        (USE, USE.removeprefix(BARRIER), "race.RAW", "sum +="),
        ("    cudaFree(Md);\n", "    free(Md);\n", "wrong-free|device-pointer-on-the-host", "free(Md)"),
        ("i < m * k", "i <= m * k", OUT, "M[i] = i"),
    ],
}  # fmt: skip

CHOSEN = {
    "1": (NAIVE, ["row in its block", "col in its block", "row without the width", "col without the width",
                  "row of the block", "row from x", "col from y", "factors exchanged", "one column less",
                  "P transposed"]),
    "2": (NAIVE, ["k - 1 products", "k + 1 products", "= for +=", "sum from 1", "sum from nothing", "from the second",
                  "+ for *", "whole numbers", "N twice", "P added to"]),
    "3": (NAIVE, ["only rows", "only columns", "m and n exchanged", "<= for <", "or for and", "no guard",
                  "one bound for all", "one column less", "guard reversed", "a name misspelt"]),
    "4": (NAIVE, ["P by k", "P transposed", "N by k", "M by n", "N transposed", "M transposed", "two subscripts",
                  "no semicolon", "N twice", "<= for <"]),
    "5": (TILED, ["no first barrier", "first for a warp", "no second barrier", "Mds transposed", "Nds transposed",
                  "= for +=", "one product less", "one product more", "Mds of a thread", "N one further"]),
    "6": (TILED, ["no first barrier", "first for a warp", "no second barrier", "barrier for some", "M not filled",
                  "Mds transposed", "= for +=", "one product more", "Mds of a thread", "store row <= m"]),
    "7": (TILED, ["no second barrier", "second for a warp", "no first barrier", "barrier for some", "return before it",
                  "N not filled", "Nds transposed", "one product less", "Nds too narrow", "sum from nothing"]),
    "8": (TILED, ["barrier for some", "return before it", "no first barrier", "no second barrier", "first for a warp",
                  "second for a warp", "store row <= m", "M not filled", "rounded down", "Mds transposed"]),
    "9": (TILED, ["tx <= k", "row <= m", "ty <= k", "col <= n", "store row <= m", "store col <= n", "store unguarded",
                  "M not filled", "N not filled", "return before it"]),
    "10": (TILED, ["rounded down", "phases of m", "tx <= k", "ty <= k", "M not filled", "N not filled",
                   "one product less", "M one further", "N one further", "no first barrier"]),
    "11": (TILED, ["M by n", "N by k", "P by k", "phases of m", "tx <= k", "col <= n", "store row <= m",
                   "store col <= n", "store unguarded", "col from y"]),
    "14": (TILED, ["no first barrier", "no second barrier", "tx <= k", "row <= m", "store row <= m", "store unguarded",
                   "Mds transposed", "= for +=", "Nds stored straight", "N by tx"]),
    "15": (TILED, ["best: no first barrier", "no second barrier", "tx <= k", "ty <= k", "store row <= m", "best from 0",
                   "max for min", "* for +", "sum for min", "- for +"]),
}  # fmt: skip


@dataclass(frozen=True)
class Attempt:
    exercise: str
    old: str
    new: str
    causes: tuple[str, ...]
    lines: tuple[str, ...]

    def text(self, solution: str) -> str:
        assert self.old in solution, (self.exercise, self.old)
        return solution.replace(self.old, self.new, 1)


def attempts() -> list[Attempt]:
    rows = {number: [pool[name] for name in names] for number, (pool, names) in CHOSEN.items()} | OTHERS
    return [
        Attempt(number, old, new, tuple(causes.split("|")), tuple(lines.split("|")))
        for number, mine in sorted(rows.items(), key=lambda row: int(row[0]))
        for old, new, causes, lines in mine
    ]


def named(attempt: Attempt, one: object) -> tuple[bool, bool, list[tuple[str, int]]]:
    """Whether it was accepted, whether a hint names its cause and place, and all that the hints name."""
    text = attempt.text(one.solution)
    made = one.grade(text, 5)
    hints = [(SAME.get(hint.cause, hint.cause), hint.line) for hint in one.hints_for(made, "en", 2)]
    lines = ["", *text.split("\n")]
    right = any(
        cause in attempt.causes and any(part in lines[line] if part else True for part in attempt.lines)
        for cause, line in hints
        if line < len(lines)
    )
    return made.full, right, hints


if __name__ == "__main__":
    from tilewise.teaching.course.exercises import find_exercise

    counts = {"accepted": 0, "named": 0, "all": 0}
    for attempt in attempts():
        if sys.argv[1:] and attempt.exercise not in sys.argv[1:]:
            continue
        accepted, right, hints = named(attempt, find_exercise(attempt.exercise))
        counts["all"] += 1
        counts["accepted"] += accepted
        counts["named"] += right
        if accepted or not right:
            change = re.sub(r"\s+", " ", f"{attempt.old} -> {attempt.new}")
            print(f"{attempt.exercise}: {'ACCEPTED' if accepted else 'not named'}: {change}: {hints}", flush=True)
    print(counts)

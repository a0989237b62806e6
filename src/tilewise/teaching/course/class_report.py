"""Statistics of a class: its most common faults, similar submissions, suspicious calls.

Similarity is by winnowing (Schleimer, Wilkerson, Aiken, SIGMOD 2003): fingerprints of token sequences after names,
numbers and layout are normalised. The list is for inspection, not a verdict: short programs are similar.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from zlib import crc32

from tilewise.teaching.course.grading import Grade
from tilewise.teaching.course.submissions import COMMENT

TOKENS = 12  # consecutive tokens of a fingerprint
WINDOW = 8  # fingerprints of which one is kept; a common sequence of TOKENS + WINDOW - 1 tokens is always found
LEAST = 0.5  # share of the smaller submission's fingerprints
MOST_PAIRS = 50
COMMON = 0.3  # fingerprints in more than this share of the class are ignored: the assignment's own text
TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|<<<|>>>|[-+*/%&|^=<>!]=|&&|\|\||<<|>>|->|\+\+|--|\S")
KEPT = frozenset(
    re.findall(
        r"\S+",
        "if else for while do return break continue switch case int float double char void unsigned const bool struct "
        "template typename __global__ __device__ __shared__ __syncthreads threadIdx blockIdx blockDim gridDim x y z",
    )
)
# functions that no exercise needs: processes, sockets, other files, code at run time
SUSPICIOUS = (
    "system", "popen", "fork", "vfork", "execl", "execlp", "execle", "execv", "execvp", "execve", "socket", "connect",
    "bind", "listen", "accept", "send", "recv", "ptrace", "dlopen", "dlsym", "mprotect", "kill", "chmod", "unlink",
    "remove", "rename", "opendir", "syscall", "asm", "__asm__", "getenv", "setuid",
)  # fmt: skip
OUTSIDE = re.compile(r'"(/(?:etc|proc|sys|dev|home|root|tmp|var)\b[^"\n]*|[^"\n]*\.\./[^"\n]*)"')


@dataclass(frozen=True)
class Common:
    """A kind of finding: the number of submissions with it, and an example."""

    kind: str
    count: int
    name: str
    file: str
    line: int
    text: str


@dataclass(frozen=True)
class Pair:
    """Two similar submissions: the share of the smaller one's fingerprints, and the first shared line in each."""

    one: str
    two: str
    share: float
    line_one: int
    line_two: int


@dataclass(frozen=True)
class Call:
    name: str
    file: str
    line: int
    what: str


def common_faults(grades: Sequence[Grade]) -> list[Common]:
    counts: Counter[str] = Counter()
    first: dict[str, Common] = {}
    for grade in grades:
        for found in {f.kind: f for f in reversed(grade.found)}.values():
            counts[found.kind] += 1
            example = Common(found.kind, 0, grade.name, grade.path(found.file), found.line, found.text.strip())
            first.setdefault(found.kind, example)
    return [replace(first[kind], count=count) for kind, count in counts.most_common()]


def suspicious(grades: Sequence[Grade]) -> list[Call]:
    """Suspicious calls and paths, for inspection: the sandbox refuses them."""
    out = []
    called = re.compile(rf"\b({'|'.join(map(re.escape, SUSPICIOUS))})\s*\(")
    for grade in grades:
        for file, text in grade.sources.items():
            code = COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
            plain = re.sub(r"//[^\n]*|/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.DOTALL)
            found = [(m.start(), f"{m[1]}()") for m in called.finditer(code)]
            found += [
                (m.start(), f'"{m[1]}"') for m in OUTSIDE.finditer(plain) if "#include" not in _line(plain, m.start())
            ]
            out += [Call(grade.name, grade.path(file), text.count("\n", 0, at) + 1, what) for at, what in sorted(found)]
    return out


def _line(text: str, at: int) -> str:
    return text[text.rfind("\n", 0, at) + 1 : at]


def fingerprints(sources: Mapping[str, str]) -> dict[int, int]:
    """The winnowed hashes of a program's token sequences, each with its first line."""
    tokens: list[tuple[str, int]] = []
    for _, text in sorted(sources.items()):
        code = COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m[0]) if m[0][0] == "/" else '"s"', text)
        for number, line in enumerate(code.split("\n"), 1):
            if not line.lstrip().startswith("#"):
                tokens += [(_normal(token), number) for token in TOKEN.findall(line)]
    hashes = [
        (crc32(" ".join(t for t, _ in tokens[i : i + TOKENS]).encode()), tokens[i][1])
        for i in range(len(tokens) - TOKENS + 1)
    ]
    kept: dict[int, int] = {}
    for i in range(max(0, len(hashes) - WINDOW + 1)):
        value, at = min(reversed(hashes[i : i + WINDOW]), key=lambda one: one[0])
        kept.setdefault(value, at)
    return kept


def _normal(token: str) -> str:
    if token in KEPT:
        return token
    return "n" if token[0].isalpha() or token[0] == "_" else "0" if token[0].isdigit() else token


def similar(grades: Sequence[Grade]) -> list[Pair]:
    """Pairs that share at least LEAST of the smaller one's fingerprints, apart from COMMON ones."""
    prints = [(grade.name, fingerprints(grade.sources)) for grade in grades]
    counts = Counter(value for _, kept in prints for value in kept)
    most = max(2, COMMON * len(prints))
    own = [(name, {v: line for v, line in kept.items() if counts[v] <= most}) for name, kept in prints]
    out = []
    for (one, first), (two, second) in combinations(own, 2):
        shared = first.keys() & second.keys()
        smaller = min(len(first), len(second))
        if smaller >= 4 and len(shared) >= LEAST * smaller:
            out.append(
                Pair(one, two, len(shared) / smaller, min(first[v] for v in shared), min(second[v] for v in shared))
            )
    return sorted(out, key=lambda pair: -pair.share)[:MOST_PAIRS]

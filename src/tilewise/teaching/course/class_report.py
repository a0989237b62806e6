"""What a class as a whole shows: its most common faults, submissions that resemble each other, calls to look at.

Similarity is by winnowing (Schleimer, Wilkerson, Aiken, SIGMOD 2003): fingerprints of token sequences after names,
numbers and layout are normalised. It is a list to look at, never a verdict: short programs resemble each other.
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

TOKENS = 12  # in a row make a fingerprint
WINDOW = 8  # of which one is kept: a common sequence of TOKENS + WINDOW - 1 tokens is always found
LEAST = 0.5  # of the smaller one's own fingerprints
MOST_PAIRS = 50
COMMON = 0.3  # a fingerprint in more than this share of the class is the assignment's own text
TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|<<<|>>>|[-+*/%&|^=<>!]=|&&|\|\||<<|>>|->|\+\+|--|\S")
KEPT = frozenset(
    re.findall(
        r"\S+",
        "if else for while do return break continue switch case int float double char void unsigned const bool struct "
        "template typename __global__ __device__ __shared__ __syncthreads threadIdx blockIdx blockDim gridDim x y z",
    )
)
# what a course's program has no use for: processes, sockets, files of others, code at run time
SUSPICIOUS = (
    "system", "popen", "fork", "vfork", "execl", "execlp", "execle", "execv", "execvp", "execve", "socket", "connect",
    "bind", "listen", "accept", "send", "recv", "ptrace", "dlopen", "dlsym", "mprotect", "kill", "chmod", "unlink",
    "remove", "rename", "opendir", "syscall", "asm", "__asm__", "getenv", "setuid",
)  # fmt: skip
OUTSIDE = re.compile(r'"(/(?:etc|proc|sys|dev|home|root|tmp|var)\b[^"\n]*|[^"\n]*\.\./[^"\n]*)"')


@dataclass(frozen=True)
class Common:
    """A kind of finding: how many submissions have it, and one of them."""

    kind: str
    count: int
    name: str
    file: str
    line: int
    text: str


@dataclass(frozen=True)
class Pair:
    """Two submissions that share much: the share of the smaller one, and where it begins in each."""

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
    """Calls and paths to look at. The sandbox refuses them; who wrote them may have reasons."""
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
    """The kept hashes of a program's token sequences, each with the line where it begins."""
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


def similar(grades: Sequence[Grade], least: float = LEAST) -> list[Pair]:
    """Pairs that share at least this part of the smaller one's fingerprints, without those that many share."""
    prints = [(grade.name, fingerprints(grade.sources)) for grade in grades]
    counts = Counter(value for _, kept in prints for value in kept)
    most = max(2, COMMON * len(prints))
    own = [(name, {v: line for v, line in kept.items() if counts[v] <= most}) for name, kept in prints]
    out = []
    for (one, first), (two, second) in combinations(own, 2):
        shared = first.keys() & second.keys()
        smaller = min(len(first), len(second))
        if smaller >= 4 and len(shared) >= least * smaller:
            out.append(
                Pair(one, two, len(shared) / smaller, min(first[v] for v in shared), min(second[v] for v in shared))
            )
    return sorted(out, key=lambda pair: -pair.share)[:MOST_PAIRS]

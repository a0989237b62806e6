# ruff: noqa: E501 — regular expressions
"""Counts words that were once private to this project, in identifiers, comments, docstrings, messages and documents.

    python tests/support/dialect.py [--list]

A word counts by its sense. `line` is a row of text but not a row of a matrix, `word` is a machine word but not a message: for
those, `ALLOWED` names the files that use the ordinary sense. Of the kernels only identifiers are
counted, the proofs of the emulator are not.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = re.compile(
    r"^(src/tilewise|tests)/kernels/|^src/tilewise/emulator/prove/|^tests/emulator/|^tests/(cuda|backends/cuda|support/dialect\.py)|^docs/(exercises|gallery)/|^CONTRIBUTING\.md|^LICENSE"
)
NAMES_LEFT_OUT = re.compile(LEFT_OUT.pattern.replace("^(src/tilewise|tests)/kernels/|", "", 1))

# Parts of an identifier, cut at underscores and capitals. Right of each: what the field says.
PARTS = {
    **dict.fromkeys(("way", "ways"), "config, variant, algorithm"),
    **dict.fromkeys(("told", "tell", "tells", "said", "says", "spoken"), "reported, message"),
    **dict.fromkeys(("asked", "ask", "asks", "asking"), "requested"),
    **dict.fromkeys(("turned", "turns"), "transposed"),
    **dict.fromkeys(("nobody", "somebody", "everybody"), "none, any, all"),
    **dict.fromkeys(("road", "roads"), "route"),
    **dict.fromkeys(("understand", "understanding", "understood"), "bind"),
    **dict.fromkeys(("finishing", "finisher"), "host epilogue"),
    **dict.fromkeys(("warming",), "precompile"),
    **dict.fromkeys(("word", "words"), "message, text, argument"),
    **dict.fromkeys(("lines",), "rows, columns, leading dimension"),
    **dict.fromkeys(("skew", "skews", "skewed"), "misalignment"),
    **dict.fromkeys(("edition", "editions"), "build id"),
    **dict.fromkeys(("little", "swept", "lags", "draws"), "small_k, skinny, pipeline stages, samples"),
    **dict.fromkeys(("crew", "sleepers", "breath", "breathe"), "thread pool, workers, pause"),
    **dict.fromkeys(("shelf", "shelves", "shelved"), "disk cache"),
    **dict.fromkeys(("detour", "detours"), "operand transform, copy"),
    **dict.fromkeys(("contest", "contestants", "rivals"), "comparison, candidates, peers"),
    **dict.fromkeys(("woven", "weave"), "interleaved"),
    **dict.fromkeys(("mend", "mended", "bed", "astray", "nods"), "repair, …"),
    **dict.fromkeys(("heard", "handed", "homes", "brought"), "reported, results, host arrays, converted"),
    **dict.fromkeys(("anyway", "standing", "soonest", "dawdles"), "unconditional, stalls, lower bound, slow"),
    **dict.fromkeys(("mends", "flying", "shade"), "hint, in flight, set the state"),
    **dict.fromkeys(("fed", "boxed", "invented"), "from_global, address_taken, assumed"),
    **dict.fromkeys(("lawful", "frugal", "unsaid", "travelled", "eldest", "anyhow", "lone", "pretended"), "…"),
}
# (path prefix, part): why the ordinary sense is meant there.
ALLOWED: dict[tuple[str, str], str] = {
    ("src/tilewise/teaching", "lines"): "lines of source or printed text",
    ("tests/teaching", "lines"): "lines of source or printed text",
    ("tests/browser", "lines"): "lines of source or printed text",
    ("tests/support", "lines"): "lines of text",
    ("tests/docs", "lines"): "lines of text",
    ("tests/test_lengths.py", "lines"): "lines of source",
    ("tests/test_typing.py", "lines"): "lines of source",
    ("src/tilewise/algebra/program.py", "lines"): "lines of a straight-line program",
    ("src/tilewise/system/llvm_text.py", "lines"): "lines of text",
    ("src/tilewise/backends/cpu/runtime/systems/linux.py", "lines"): "lines of a file",
    ("tests/backends/cpu/inner_loops.py", "lines"): "lines of assembly",
    ("src/tilewise/torch/linear_layer.py", "lines"): "on_lines is a public keyword",
    ("src/tilewise/bench/linear.py", "lines"): "on_lines is a public keyword",
    ("tests/torch", "lines"): "on_lines is a public keyword",
    ("src/tilewise/cli/graphs.py", "skew"): "the format's skew-symmetric",
    ("tests/cli/test_refusals.py", "skew"): "the format's skew-symmetric",
    ("tests/support/fuzzed_formats.py", "skew"): "the format's skew-symmetric",
    ("src/tilewise/kernels", "lines"): "contiguous rows or columns of an operand",
    ("src/tilewise/kernels", "boxed"): "stored by boxes of the TMA",
    ("tests/kernels", "lines"): "contiguous rows or columns of an operand",
    ("tests/kernels", "boxed"): "stored by boxes of the TMA",
    ("src/tilewise/kernels", "word"): "machine words",
    ("src/tilewise/kernels", "words"): "machine words",
    ("tests/kernels", "words"): "machine words",
    ("src/tilewise/backends/cpu/kernels", "word"): "machine words",
    ("src/tilewise/backends/cpu/kernels", "words"): "machine words",
    ("tests/browser/test_lecture.py", "words"): "machine words",
    ("src/tilewise/backends/cpu/family.py", "way"): "cache associativity",
    ("src/tilewise/backends/cuda/compile.py", "little, swept, lags"): "a value of TILEWISE_COMPILE",
    ("src/tilewise/algebra/program_cuda.py", "words"): "the CUDA type Word",
    ("tests/docs/test_front_door.py", "words"): "counts words",
    ("docs/making/figures.py", "words"): "words of text",
    ("tests/backends/cpu", "word"): "a feature in a list of them",
    ("tests/backends/cpu", "lines"): "lines of assembly or of a file",
    ("src/tilewise/core/recipe.py", "lines"): "fields that the kernels name",
    ("src/tilewise/emulator/host/lower", "lines"): "lines of LLVM text",
    ("src/tilewise/emulator/host/lower/checked_memory.py", "word"): "machine words",
    ("src/tilewise/emulator/host/lower/checked_memory.py", "words"): "machine words",
    ("src/tilewise/emulator/host/runtime/mixed_gemm.py", "words"): "machine words",
    ("src/tilewise/emulator/host/runtime/scanning.py", "word"): "words of input",
    ("src/tilewise/emulator/host/runtime/streams.py", "word"): "words of input",
    ("src/tilewise/emulator/host/runtime/streams.py", "words"): "words of input",
    ("src/tilewise/emulator/source", "lines"): "lines of source",
    ("src/tilewise/emulator/host/sources.py", "lines"): "lines of source",
    ("src/tilewise/emulator/host/file_broker.py", "lines"): "lines of text",
    ("src/tilewise/emulator/check/binding.py", "lines"): "lines of text",
    ("src/tilewise/emulator/machine/costs.py", "word"): "words of shared memory banks",
    ("src/tilewise/emulator/machine/costs.py", "words"): "words of shared memory banks",
}

PHRASES = {
    "nobody": r"\b(?:no|some|any|every)body(?:'s)?\b",
    "told": r"\b(?:told|tells?|telling)\b",
    "asked": r"\b(?:asks?|asked|asking)\b",
    "turned": r"\bturn(?:s|ed)? (?!into|out|on|off|to)|\b(?:has|have|had|its|whose) turn\b",
    "way": r"\bways?\b(?<!either way)(?<!this way)(?<!same way)(?<!that way)(?<!other way)(?! to\b)",
    "words": r"(?<!-bit )(?<!machine )(?<!control )(?<!64 )(?<!key)\bwords?\b",
    "lines": r"\b(?:along|across|between|of|on|odd|aligned|unaligned|its|their|whose|every|shared|same|long|short) lines\b|\blines (?:of (?:a |the )?(?:matrix|operand|tile|[MNPAB]\b)|along|apart|lie|that (?:lie|start|begin))",
    "road": r"\broads?\b",
    "understanding": r"\bunderst(?:and|ood|anding)\b",
    "skew": r"\bskew(?:s|ed)?\b",
    "edition": r"\beditions?\b",
    "little, swept, lags": r"\b(?:swept|lags?|lagging)\b|`(?:little|alone|inside)`",
    "stands": r"\b(?:stands?|stood|standing) (?:above|beside|below|behind|on|in|for itself|alone|apart|here|there|so|by|at|next|over|under)\b",
    "destroyed": r"\btaken down\b|\btakes? down\b",
    "personified": r"\b(?:kernels?|threads?|blocks?|warps?|famil(?:y|ies)|planners?|cards?|compilers?|machines?|cores?|callers?) (?:that )?(?:only )?(?:knows?|wants?|likes?|hurr(?:y|ies)|thinks?|sees?|nods?|says?|minds?|cares?|believes?|remembers?|sleeps?|breathes?|speaks?|lies?)\b",
    "had, at hand": r"\b(?:to be had|at hand|in hand|comes? to hand|in (?:no|each other's|its|their|the) way|led astray|of (?:one's|its|their) own accord|for good measure|be that as it may|gets? in the way)\b",
    "shelf": r"\bshel(?:f|ves)\b",
    "contest": r"\bcontest(?:ants?|s)?\b|\brivals?\b",
    "woven": r"\b(?:woven|weaves?)\b",
    "crew": r"\bcrew\b",
    "detour": r"\bdetours?\b",
    "mend": r"\bmend(?:s|ed|ing)?\b",
    "gives way": r"\b(?:gives?|gave|giving) way\b",
    "mere, riddle": r"\bmere (?:value|place|number)s?\b|\briddles?\b",
    "what … is": r"\bwhat (?:it|they|he|she) (?:is|are) (?:known|made|called)\b|\bknown by\b",
    "looked through": r"\blooked through\b|\b(?:hard|as|where) (?:they|it) lay\b|\bpeople (?:write|loop)\b",
    "whatever": r"\bwhoever\b|\bhimself\b|\bas before\b|\banew\b|\bbegun\b|\bfor ever\b",
}
PHRASE = {name: re.compile(text.replace("[MNPAB]", "[mnpab]")) for name, text in PHRASES.items()}  # of lower case


def files(suffixes: tuple[str, ...], left_out: re.Pattern[str] = LEFT_OUT) -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return [f for f in listed if f.endswith(suffixes) and not left_out.search(f) and (ROOT / f).is_file()]


def parts(name: str) -> list[str]:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().split("_")


def defined(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Names that a file introduces, each with its line: not those it only uses."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node.lineno
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name, node.lineno


def identifiers() -> Iterator[tuple[str, int, str]]:
    for path in files((".py", ".js"), NAMES_LEFT_OUT):
        private = PARTS.keys() - {part for (prefix, part) in ALLOWED if path.startswith(prefix)}
        names = [(Path(path).stem, 1)] if not path.startswith("tests/") else []
        text = (ROOT / path).read_text("utf-8")
        if path.endswith(".py"):
            if any(private.intersection(parts(name)) for name in set(re.findall(r"[A-Za-z_]\w*", text))):
                names += defined(ast.parse(text))
        else:
            names += [
                (m[1], text.count("\n", 0, m.start()) + 1)
                for m in re.finditer(r"\b(?:const|let|function|class)\s+(\w+)", text)
            ]
        yield from ((path, line, name) for name, line in names if private.intersection(parts(name)))


# Comments and strings of Python: tokenize finds the same, in ten times the time.
PROSE = re.compile(r'"""(?:\\.|[^\\])*?"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|#[^\n]*', re.DOTALL)


def prose(path: str) -> Iterator[tuple[int, str]]:
    """Lines with their numbers: comments and strings of Python, a document without its code blocks and `code`."""
    text = (ROOT / path).read_text("utf-8")
    if path.endswith(".md"):
        blank = lambda m: re.sub(r"[^\n]", " ", m[0])  # noqa: E731
        text = re.sub(r"`[^`\n]*`", blank, re.sub(r"^( *)```.*?^\1```", blank, text, flags=re.DOTALL | re.MULTILINE))
        yield from enumerate(text.split("\n"), 1)
        return
    number = counted = 0
    for found in PROSE.finditer(text):
        number += text.count("\n", counted, counted := found.start())
        yield from enumerate(found[0].split("\n"), number + 1)


def phrases() -> Iterator[tuple[str, int, str, str]]:
    for path in files((".py", ".md")):
        allowed = {part for (prefix, part) in ALLOWED if path.startswith(prefix)}
        lines = [(number, line) for number, line in prose(path) if line.strip()]
        text = "\n".join(line for _, line in lines).lower()
        for name, rx in PHRASE.items():
            for found in rx.finditer(text) if name not in allowed else ():
                number, line = lines[text.count("\n", 0, found.start())]
                yield path, number, name, line.strip()


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--list", action="store_true", help="every place, not only the totals")
    options.add_argument("paths", nargs="*", help="only files whose path begins with one of these")
    chosen = options.parse_args()
    inside = lambda path: not chosen.paths or path.startswith(tuple(chosen.paths))  # noqa: E731
    names = [found for found in identifiers() if inside(found[0])]
    found = [place for place in phrases() if inside(place[0])]
    if chosen.list:
        for path, line, name in names:
            print(f"{path}:{line}: {name}")
        for path, line, phrase, text in found:
            print(f"{path}:{line}: [{phrase}] {text}")
    for phrase, count in Counter(place[2] for place in found).most_common():
        print(f"{count:6}  {phrase}")
    print(f"{len(names)} identifiers, {len(found)} phrases")
    return bool(names)


if __name__ == "__main__":
    sys.exit(main())

"""The reference: every public name with its signature and its docstring, in teaching order."""

from __future__ import annotations

import importlib
import inspect
import re
import textwrap
from typing import Any

import tilewise as tw

SECTIONS = {
    "Products": (
        "matmul", "einsum", "chain", "power", "matvec", "vecmat", "vecdot", "inner", "outer", "tensordot", "plan",
        "Plan", "Problem", "fingerprint", "set_num_threads", "get_num_threads",
    ),
    "Many products": ("grouped_matmul", "scatter_rows", "matmul_many", "grouped_plan", "block_sparse_matmul"),
    "Graphs": ("closure", "path"),
    "Algebra": (
        "Semiring", "modular", "minimum", "maximum", "where", "logaddexp", "exp", "log", "log1p", "sqrt", "absolute",
        "logical_and", "logical_or", "logical_not",
    ),
    "Values with fields": ("k_best",),
    "CUDA C with no GPU": ("trace", "Trace", "check", "explore"),
    "Arrays on a GPU": ("to_device", "DeviceArray", "warm"),
    "Errors": (
        "TilewiseError", "UsageError", "ShapeError", "DtypeError", "AlgebraError", "CycleError", "FileError",
        "DeviceError", "EngineError", "OutOfMemoryError", "KernelError", "LimitError",
    ),
}  # fmt: skip
VALUES = {  # names that are not functions, by section
    "Products": (
        "`tw.SemiringName`, `tw.DTypeName` and `tw.ActivationName` are the names that calls take, as `Literal` types.",
    ),
    "Algebra": (
        "`tw.semirings` is the table of built-in semirings by name.",
        "`tw.largest` and `tw.smallest` are ∞, MAX or True, and their opposites, by dtype.",
    ),
    "Values with fields": (
        "`tw.min_count` (the shortest length and how many paths have it), `tw.max_arg` (the best value and where it "
        "comes from) and `tw.dual` (numbers with a derivative) are semirings over several fields; see "
        "[how to use them](how/structured.md).",
    ),
}
MADE_FOR_YOU = ("Plan", "Problem", "Trace", "Acceleration", "TilewiseError")
MEMBERS = (  # of classes, where they have them
    "of", "choices", "routed", "left", "rows", "to_json", "text", "to_svg", "to_html", "numpy", "copy_from", "free",
)  # fmt: skip
TORCH = (
    "matmul", "closure", "Linear", "linear", "accelerate", "Acceleration", "patch", "unpatch", "choices",
    "linear_cross_entropy",
)  # fmt: skip


def reference() -> str:
    """The page as Markdown."""
    page = ["# Reference", "", "Every example on this page runs in the tests. `tw` is `import tilewise as tw`.", ""]
    for title, names in SECTIONS.items():
        page += [f"## {title}", ""]
        page += [text + "\n" for text in VALUES.get(title, ())]
        for name in names:
            page += entry("tw", name, getattr(tw, name))
    page += ["## PyTorch", "", "`tw.torch` imports torch; see [how to use it](how/torch.md).", ""]
    try:
        torch = importlib.import_module("tilewise.torch")
    except ImportError:
        page += ["(This page was built without PyTorch.)", ""]
    else:
        for name in TORCH:
            page += entry("tw.torch", name, getattr(torch, name))
    return "\n".join(page)


def entry(module: str, name: str, thing: Any) -> list[str]:
    parents = ""
    if inspect.isclass(thing) and issubclass(thing, Exception):
        kinds = [k.__name__ for k in thing.__mro__[1:-1] if k not in (Exception, BaseException)]
        parents = f" ({', '.join(kinds)})" if kinds else ""
    page = [f"### {module}.{name}", ""]
    if parents:
        page += [f"Also a {parents.strip(' ()')}.", ""]
    elif call := signature(name, thing):
        page += ["```text", call, "```", ""]
    page += [markdown(inspect.getdoc(thing) or ""), ""]
    if inspect.isclass(thing) and not parents:
        for own in MEMBERS:
            member = vars(thing).get(own)
            text = inspect.getdoc(member.fget if isinstance(member, property) else member) if member else None
            if text:
                page += [f"- `.{own}`: {text.splitlines()[0]}"]
        page += [""]
    return page


def signature(name: str, thing: Any) -> str:
    """The call, wrapped where it is long; empty for classes that users do not construct."""
    if name in MADE_FOR_YOU:
        return ""
    plain = [p.replace(annotation=p.empty) for p in inspect.signature(thing).parameters.values()]
    text = f"{name}{inspect.Signature(plain)}"
    return textwrap.fill(text, 88, subsequent_indent=" " * (len(name) + 1), break_on_hyphens=False)


def markdown(doc: str) -> str:
    """A docstring as Markdown: its examples fenced, its arguments a list."""
    out: list[str] = []
    fence = False
    for line in doc.splitlines():
        example = line.lstrip().startswith((">>>", "...")) or (fence and bool(line.strip()))
        if example and not fence:
            out += ["", "```pycon"]
        if fence and not example:
            out += ["```", ""]
        fence = example
        if example:
            out.append(line)
            continue
        argument = re.match(r"^([a-zA-Z_]\w*(?:, [a-zA-Z_]\w*)*): (.*)", line)
        if argument and not line.startswith(("http", "Also")):
            named = ", ".join(f"`{name}`" for name in argument[1].split(", "))
            if out and out[-1] and not out[-1].startswith(("- ", "  ")):
                out.append("")
            out.append(f"- {named}: {argument[2]}")
        elif out and out[-1].startswith(("- `", "  ")) and line.strip():
            out.append("  " + line.strip())
        else:
            out.append(line)
    if fence:
        out.append("```")
    return "\n".join(out)

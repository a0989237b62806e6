"""Every sentence that the emulator can report about a program, read from its source: forms, with a zero byte for each
value."""

from __future__ import annotations

import ast
from itertools import product
from pathlib import Path

import tilewise

SIMT = Path(tilewise.__file__).parent / "emulator"
# functions that return a sentence, or a part of one
GIVERS = {
    "check/wording.py": ("_guard_hint", "_race_hint", "_uninitialised_hint"),
    "check/judge.py": ("_coverage_hint", "terms_missing"),
    "check/verdict.py": ("assign_basis", "_own_basis", "_assumed_basis"),
    "host/runtime/cuda_launch.py": ("_configuration", "_mend"),
    "host/runtime/cuda_memory.py": ("_where",),
    "host/runtime/host_faults.py": ("describe",),
}
FILLED = "\0"


def forms(node, scope, spelt=False):
    """The texts that an expression may give; `spelt`: with local names in an f-string replaced by their values."""
    if isinstance(node, ast.Constant):
        return {str(node.value)} if isinstance(node.value, str) else {FILLED}
    if isinstance(node, ast.JoinedStr):
        parts = [
            forms(v, scope) if isinstance(v, ast.Constant) else _choices(v.value, scope, spelt) for v in node.values
        ]
        return {"".join(chosen) for chosen in product(*parts)}
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return {a + b for a, b in product(forms(node.left, scope, spelt), forms(node.right, scope, spelt))}
    if isinstance(node, ast.IfExp):
        return forms(node.body, scope, spelt) | forms(node.orelse, scope, spelt)
    if isinstance(node, ast.BoolOp):
        return set().union(*(forms(value, scope, spelt) for value in node.values))
    if isinstance(node, ast.Dict):
        return set().union(*(forms(value, scope, spelt) for value in node.values))
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Dict):
        return forms(node.value, scope, spelt)
    if isinstance(node, ast.Name) and node.id in scope:
        others = {k: v for k, v in scope.items() if k != node.id}
        return set().union(*(forms(value, others, spelt) for value in scope[node.id]))
    return {FILLED}


def _choices(node, scope, spelt):
    """The value in the braces of an f-string: one of two constants, or any text."""
    if spelt and isinstance(node, ast.Name):
        return forms(node, scope, spelt)
    if isinstance(node, ast.IfExp) and all(isinstance(x, ast.Constant) for x in (node.body, node.orelse)):
        return {str(node.body.value), str(node.orelse.value)}
    return {FILLED}


def assigned(function):
    """Local names and everything assigned to them."""
    out = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            out.setdefault(node.targets[0].id, []).append(node.value)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id in out:
            earlier = out[node.target.id].pop()
            out[node.target.id].append(ast.BinOp(earlier, ast.Add(), node.value))
    return out


def sentences_in(function, giver, kernel):
    """The sentences of a function: arguments of `faults.add`, notes, ends of programs, and hints."""
    scope = assigned(function)
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name.endswith("faults.add"):
                yield from [(x, node.lineno) for x in node.args[2:4]]
                yield from [(k.value, node.lineno) for k in node.keywords if k.arg == "evidence"]
            elif name.endswith(".finish") and len(node.args) == 3:
                yield node.args[2], node.lineno
            elif name.endswith("notes.append") or name in ("misused", "UnknownLaunch"):
                yield node.args[0], node.lineno
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
            if node.targets[0].attr == "hint" or (node.targets[0].attr == "evidence" and not kernel):
                yield node.value, node.lineno
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Attribute) and node.target.attr == "hint":
            yield ast.BinOp(ast.Name("earlier"), ast.Add(), node.value), node.lineno
        elif giver and isinstance(node, ast.Return) and node.value is not None:
            yield node.value, node.lineno
    if "where" in scope and not kernel:
        yield ast.Name("where"), function.lineno


REFUSERS = ("error", "refuse", "refused", "KernelError", "fail", "unsupported")


def every_refusal():
    """The same for CUDA C that is refused."""
    for path in sorted(p for room in ("source", "parse", "sema", "compile") for p in (SIMT / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in REFUSERS:
                for argument in node.args:
                    plain = {f for f in forms(argument, {}) if " " in f.strip() and any(c.isalpha() for c in f)}
                    if plain:
                        yield f"{path.name}:{node.lineno}", plain, plain


def every_sentence():
    """(place, forms, forms with local names spelt out) of every sentence in check/ and host/."""
    for path in sorted([*(SIMT / "check").rglob("*.py"), *(SIMT / "host").rglob("*.py")]):
        inside = path.relative_to(SIMT).as_posix()
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(function, ast.FunctionDef):
                continue
            scope = assigned(function)
            giver = function.name in GIVERS.get(inside, ())
            for node, line in sentences_in(function, giver, inside.startswith("check/")):
                plain, spelt_out = (
                    {
                        f
                        for f in forms(node, scope, spelt)
                        if (f[:1].isalnum() or f[:1] == FILLED) and any(c.isalpha() for c in f)
                    }
                    for spelt in (False, True)
                )
                if plain:
                    yield f"{inside}:{line}", plain, spelt_out

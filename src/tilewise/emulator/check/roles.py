"""Roles of a kernel's parameters: which pointer is M, N or P, which number is m, k, n or a leading dimension.

Determined by type and stores first, then by name, then by the sizes' use as strides."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from tilewise.emulator.compile.kernel import TILE_NAMES
from tilewise.emulator.machine.leaves import element_dtype
from tilewise.emulator.machine.program import Program, Variable
from tilewise.emulator.parse import tree
from tilewise.emulator.parse.types import BOOL, Pointer, Record, Scalar, Type

ROLE_LETTERS = {"a": "M", "m": "M", "b": "N", "n": "N", "c": "P", "p": "P", "x": "M", "y": "N", "z": "P"}
ROLE_DIGITS = {"1": "M", "2": "N", "3": "P"}
OUTPUT_NAMES = ("result", "out", "output", "res", "prod", "product", "dst", "ans", "ret")
PRODUCT = re.compile(r"(?i)mul|gemm|mm|prod|dot|tiled?_?m")
MULTIPLIES = re.compile(r"(?i)fma(?!x)|mad|mul|mma|dot|prod")  # in the name of a function of CUDA
OTHER_WORK = re.compile(
    r"(?i)blur|conv|stencil|filter|hist|scan|sort|transp|add|plus|subtract|sobel|gr[ae]y|image|img|heat|laplac|jacobi|"
    r"diffus|softmax|norm|attention|body|copy|reduc|sum|spmv|gemv|vec|saxpy|max|min_?k|fill|init"
)
WIDTH_NAMES = (
    "width", "w", "cols", "ncols", "columns", "numcols", "col", "ncol", "n_cols", "num_cols", "numcolumns",
)  # fmt: skip
HEIGHT_NAMES = ("height", "h", "rows", "nrows", "numrows", "row", "nrow", "n_rows", "num_rows")
PITCH_NAMES = ("pitch", "stride", "ld", "leading_dim", "lda", "step")


def normalised_name(name: str) -> str:
    """The name without common prefixes and suffixes, lower case: Md, d_M, dev_A, A_d, h_C, Matrix_A."""
    text = re.sub(r"^(dev|device|d|h|host|g|gpu|cuda|mat|matrix|in|input|ptr|p)_", "", name.strip("_"), flags=re.I)
    text = re.sub(r"_(d|dev|device|h|host|gpu|in|ptr|elements|data)$", "", text, flags=re.I)
    text = re.sub(r"^(dev|mat|matrix|device|d)(?=[A-Z])", "", text)
    if len(text) == 2 and text[1] in "dhs" and text[0].isupper():
        text = text[0]
    return text.lower()


def role_by_name(name: str) -> str | None:
    text = normalised_name(name)
    if text in OUTPUT_NAMES:
        return "P"
    if text in ROLE_LETTERS:
        return ROLE_LETTERS[text]
    match = re.match(r"^(?:matrix|mat|m|in|input|src|arr)?_?([abcmnp])(?:_|mat|matrix|s|$)", text)
    return ROLE_LETTERS[match.group(1)] if match else None


def matrix_like(type_: Type) -> bool:
    """A pointer to numbers, or a struct with a pointer to numbers and sizes (by value or by pointer)."""
    if isinstance(type_, Pointer):
        inner = type_.to
        if isinstance(inner, Record) and _struct_pointer(inner) is not None:
            return True
        return element_dtype(inner)[0] is not None
    return isinstance(type_, Record) and _struct_pointer(type_) is not None


def _struct_pointer(struct: Record) -> str | None:
    names = [f.name for f in struct.members if isinstance(f.type, Pointer)]
    numbers = [f for f in struct.members if isinstance(f.type, Scalar) and not f.type.floating]
    return names[0] if len(names) == 1 and numbers else None


def matrix_struct(type_: Type) -> Record | None:
    inner = type_.to if isinstance(type_, Pointer) else type_
    return inner if isinstance(inner, Record) and _struct_pointer(inner) is not None else None


def member_role(struct: Record, name: str) -> str | None:
    """ "cols", "rows", "pitch" or "data"."""
    found = struct.field(name)
    if found is None:
        return None
    if isinstance(found[0].type, Pointer):
        return "data"
    text = name.lower()
    if text in PITCH_NAMES:
        return "pitch"
    if text in WIDTH_NAMES:
        return "cols"
    return "rows" if text in HEIGHT_NAMES else None


def names_other_work(kernel: str) -> bool:
    """Whether a kernel's name says that it computes no product: a blur has three arrays, too."""
    return OTHER_WORK.search(kernel) is not None and not names_product(kernel)


def names_product(kernel: str) -> bool:
    return PRODUCT.search(kernel) is not None


def multiplies_elements(
    body: tree.Node, arrays: set[str], called: Callable[[str], list[tree.Function]], within: tuple[str, ...] = ()
) -> bool:
    """Whether two different elements of arrays are multiplied, as by every product: the square of a difference, a
    quotient and `(M[i] + N[i]) * factor` are of other work. `called`: the program's functions of a name, with their
    bodies; `within`: those that are open."""
    names = arrays | _holding_elements(body)

    def element(node: Any) -> bool:
        return any(isinstance(n, tree.Index) or (isinstance(n, tree.Name) and n.name in names) for n in _values(node))

    def sums(node: Any) -> bool:
        return isinstance(node, tree.Binary) and node.op in "+-" and element(node.left) and element(node.right)

    for node in _values(body):
        parts: list[Any] = []
        if isinstance(node, tree.Binary) and node.op in ("*", "&", "&&"):
            parts = [node.left, node.right]
        elif isinstance(node, tree.Assign) and node.op == "*=":
            parts = [node.target, node.value]
        elif isinstance(node, tree.Call) and isinstance(node.function, tree.Name):
            own = called(node.function.name)
            for f in own:
                if f.name not in within and multiplies_elements(
                    f.body, {p.name for p in f.parameters}, called, (*within, f.name)
                ):
                    return True
            name = node.function.name.rpartition("::")[2]
            tropical = re.match(r"f?(min|max)", name) is not None and any(sums(x) for x in node.arguments)
            parts = node.arguments if not own and (tropical or MULTIPLIES.search(name)) else []
        parts = [x for x in parts if element(x) and (isinstance(node, tree.Call) or not sums(x))]
        if len(parts) > 1 and not _same(parts[0], parts[1]):
            return True
    return False


def _values(node: Any) -> Iterator[tree.Node]:
    """The nodes below, without those of subscripts."""
    stack = [node]
    while stack:
        item = stack.pop()
        if isinstance(item, (list, tuple)):
            stack.extend(item)
        elif isinstance(item, tree.Node):
            yield item
            stack.extend(getattr(item, name) for name in item.__slots__ if not isinstance(item, tree.Index))


def _holding_elements(body: tree.Node) -> set[str]:
    """The local variables that an element of an array is stored to, directly or through another."""
    stores = [(n.name, n.init) for n in tree.walk(body) if isinstance(n, tree.Variable)]
    assigned = [n for n in tree.walk(body) if isinstance(n, tree.Assign)]
    stores += [(n.target.name, n.value) for n in assigned if isinstance(n.target, tree.Name)]
    found: set[str] = set()
    while more := {
        name
        for name, value in stores
        if name not in found
        for n in _values(value)
        if isinstance(n, tree.Index) or (isinstance(n, tree.Name) and n.name in found)
    }:
        found |= more
    return found


def _same(one: Any, two: Any) -> bool:
    """Whether two expressions are written alike."""
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(_same, one, two))
    if not isinstance(one, tree.Node) or type(one) is not type(two):
        return bool(one == two)
    return all(_same(getattr(one, n), getattr(two, n)) for n in one.__slots__ if n not in ("line", "column", "extent"))


def assign_matrices(program: Program, requested: bool = False) -> dict[str, Variable] | None:
    """M, N, P among the parameters; None if there are not exactly three candidates or, unless a shape was requested, no
    size is a stride of any of them."""
    candidates = [v for v in program.parameters if matrix_like(v.type)]
    if len(candidates) != 3:
        return None
    structs = any(matrix_struct(v.type) is not None for v in candidates)
    if not (requested or structs or program.usage or any(isinstance(s, int) for s in program.symbols)):
        return None  # no strides: three vectors, not three matrices
    if len({element_dtype(v.type.to)[1] for v in candidates if isinstance(v.type, Pointer)}) > 1:
        return None  # float4 and float: how rows are packed is not known
    stored = [v for v in candidates if _is_output(program, v)]
    named = {v.name: role_by_name(v.name) for v in candidates}
    if len(stored) == 1:
        output = stored[0]
    else:
        by_name = [v for v in candidates if named[v.name] == "P"]
        output = by_name[0] if len(by_name) == 1 else candidates[2]
    inputs = [v for v in candidates if v is not output]
    if named[inputs[0].name] == "N" and named[inputs[1].name] == "M":
        inputs.reverse()
    return {"M": inputs[0], "N": inputs[1], "P": output}


def _is_output(program: Program, variable: Variable) -> bool:
    if isinstance(variable.type, Pointer) and variable.type.const:
        return False
    return variable.key in program.stored


def is_factor(variable: Variable) -> bool:
    """alpha or beta of a GEMM."""
    type_ = variable.type
    return isinstance(type_, Scalar) and (type_.floating or variable.name.lower() in ("alpha", "beta"))


def assign_sizes(program: Program, matrices: dict[str, Variable], given: dict[str, Any]) -> dict[str, Any] | None:
    """The meanings of the integer parameters that were not given; None if one cannot be determined."""
    numbers = [v for v in program.parameters if isinstance(v.type, Scalar) and not is_factor(v) and v.name not in given]
    out: dict[str, Any] = {}
    plain: list[Variable] = []
    for v in numbers:
        meaning = size_by_name(v.name)
        if v.type is BOOL:
            meaning = "off"
        elif v.name in TILE_NAMES:
            meaning = "tile"
        elif v.name.lower().startswith(("batch", "nbatch", "num_batch")):
            meaning = "one"
        if meaning is not None:
            out[v.name] = meaning
        else:
            plain.append(v)
    sizes = [meaning for meaning in out.values() if meaning not in ("off", "tile", "one")]
    if not plain:
        return out
    if len(plain) == 1 and not sizes:
        out[plain[0].name] = "all"
        return out
    used = strides_of(program, matrices)
    names = [v.name for v in plain]
    if len(plain) == 3 and not sizes:
        out.update(three_sizes(names, used))
        return out
    if len(plain) == 2 and not sizes:
        out.update(two_sizes(names, used))
        return out
    if len(plain) == 1:
        out[plain[0].name] = next((x for x in ("k", "n", "m") if x not in out.values()), "all")
        return out
    letters = {"m": "m", "k": "k", "n": "n"}
    for name in names:
        if name.lower() not in letters:
            return None
        out[name] = letters[name.lower()]
    return out


def size_by_name(name: str) -> str | None:
    """The meaning of an unambiguous name: numARows, wA, hB, lda, M_cols …; else None."""
    text = name.replace("_", "").lower()
    text = re.sub(r"^(num|n|d|no|nr|number|numof)(?=[abcmnp](row|col|wid|hei))", "", text)
    text = re.sub(r"^(num|n|no|nr|number|numof)(?=(row|col)[a-z]*[abcmnp123]$)", "", text)
    match = re.match(r"^ld([abcmnp])$", text)
    if match:
        return "ld" + ROLE_LETTERS[match.group(1)]
    match = re.match(r"^([abcmnp])(row|col|width|height|w$|h$)", text)
    if match is None:
        flipped = re.match(r"^(rows?|cols?|columns?|width|height|w|h)(?:of)?([abcmnp123])$", text)
        if flipped is None:
            return None
        letter, axis = flipped.group(2), flipped.group(1)
    else:
        letter, axis = match.group(1), match.group(2)
    rows = axis[0] in "rh"
    table = {"M": ("m", "k"), "N": ("k", "n"), "P": ("m", "n")}
    return table[ROLE_LETTERS.get(letter) or ROLE_DIGITS[letter]][0 if rows else 1]


def strides_of(program: Program, matrices: dict[str, Variable]) -> dict[str, dict[str, int]]:
    """How often each size steps through each matrix: {"M": {"K": 2}, …}."""
    keys = {v.key: role for role, v in matrices.items()}
    out: dict[str, dict[str, int]] = {"M": {}, "N": {}, "P": {}}
    sources = program.sources
    for key, symbol in program.usage:
        reached, seen = {key}, {key}
        while reached:
            nxt = {s for k in reached for s in sources.get(k, ())} - seen
            seen |= nxt
            reached = nxt
        for k in seen:
            role = keys.get(k)
            if role is not None:
                name = program.symbols[symbol]
                out[role][name] = out[role].get(name, 0) + 1
    return out


def three_sizes(names: list[str], used: dict[str, dict[str, int]]) -> dict[str, str]:
    """Meanings of three sizes. Conventions differ (BLAS: M is m×k; textbook: M is m×n), and the order may be any: the
    strides decide."""
    lower = [n.lower() for n in names]
    first, second, third = names
    orders = [("m", "k", "n"), ("m", "n", "k"), ("n", "k", "m"), ("k", "n", "m"), ("n", "m", "k"), ("k", "m", "n")]
    letters = 0
    if set(lower) in ({"m", "n", "k"}, {"m", "n", "p"}):
        by_letter = dict(zip(lower, names, strict=True))
        first, second, third = (by_letter[x] for x in ("mnk" if "k" in by_letter else "mpn"))
        orders = [("m", "n", "k"), ("m", "k", "n"), ("n", "k", "m"), ("k", "n", "m"), ("n", "m", "k"), ("k", "m", "n")]
        letters = 2
    conventions = [dict(zip((first, second, third), order, strict=True)) for order in orders]
    return _best(conventions, used, letters)


# what M, N and P step by: row by row; all column by column; N transposed; M transposed
LAYOUTS = (("k", "n", "n"), ("m", "k", "m"), ("k", "k", "n"), ("m", "n", "n"))


def _best(options: list[dict[str, str]], used: dict[str, dict[str, int]], letters: int = 0) -> dict[str, str]:
    """The option under which the most strides are those of one layout; the first of equals.

    `letters`: the number of options that agree with the letters m, n and k; in any layout they are tried first."""

    def score(option: dict[str, str], layout: tuple[str, str, str]) -> int:
        pairs = zip("MNP", layout, strict=True)
        return sum(n for role, want in pairs for name, n in used[role].items() if option.get(name) == want)

    # of other layouts than row-major only the first two orders: else a single mistake would fit some layout
    tried = [(layout, o) for layout in LAYOUTS for o in options[:letters]]
    tried += [(layout, o) for layout in LAYOUTS for o in (options if layout is LAYOUTS[0] else options[:2])]
    return max(tried, key=lambda pair: score(pair[1], pair[0]))[1]


def two_sizes(names: list[str], used: dict[str, dict[str, int]]) -> dict[str, str]:
    """Meanings of two sizes, by the strides."""
    first, second = names
    options = [{first: "k", second: "n"}, {first: "m", second: "k"}, {first: "k", second: "m"}]
    options.append({first: "n", second: "k"})
    return _best(options, used)

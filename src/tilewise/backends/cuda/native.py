"""Filling a recipe's holes and launching it in one native call: LLVM text, or the same through ctypes.

An image holds everything a recipe passes to the driver: launch configurations, parameter tables, parameters. A call
copies it to the stack (threads share an image), writes addresses into the copy, gives tensor maps their address and
launches. The words of a header say where everything is.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from tilewise.core.recipe import BASES
from tilewise.system import machine_code
from tilewise.system.builtin_call import builtin
from tilewise.system.llvm_lock import LLVM

STREAM, SELF = len(BASES), len(BASES) + 1  # what a hole may be filled with beside the bases
HEADER = (
    "size", "blob", "holes", "hole_table", "maps", "map_table", "steps", "step_table",
    "launch", "replace", "memset", "low_m", "high_m", "low_n", "high_n", "low_p", "high_p",
)  # fmt: skip
WORDS_A_HOLE, WORDS_A_STEP = 3, 4  # (position, base, offset) · (kind, function, configuration, parameters)
LAUNCH, ZERO = 0, 1  # kinds of steps
OVERLAPS = -1  # the answer where P shares memory with M or N: nothing was launched
DRIVER = {"launch": "cuLaunchKernelEx", "replace": "cuTensorMapReplaceAddress", "memset": "cuMemsetD32Async"}


@lru_cache(maxsize=1)
def driver_library() -> ctypes.CDLL:
    """The driver itself."""
    return ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")


@lru_cache(maxsize=1)
def encoder() -> Callable[..., int]:
    """The driver's cuTensorMapEncodeTiled: a tensor map in three microseconds, where its bindings take twenty."""
    function = driver_library().cuTensorMapEncodeTiled
    word, pointer = ctypes.c_uint, ctypes.c_void_p
    function.argtypes = (
        pointer,
        word,
        word,
        ctypes.c_uint64,
        pointer,
        pointer,
        pointer,
        pointer,
        word,
        word,
        word,
        word,
    )
    function.restype = ctypes.c_int
    return function


@lru_cache(maxsize=1)
def driver_functions() -> dict[str, int]:
    """The addresses of what an image calls in the driver; 0 where the driver is too old to have it."""
    library, found = driver_library(), {}
    for word, name in DRIVER.items():
        try:
            found[word] = ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
        except AttributeError:
            found[word] = 0
    return found


def _word(name: str) -> str:
    """IR that loads one word of the header into %name."""
    return f"  %{name}.p = getelementptr i64, ptr %h, i64 {HEADER.index(name)}\n  %{name} = load i64, ptr %{name}.p\n"


def _loop(name: str, body: str, after: str) -> str:
    """IR of a loop over %i.name from 0 to the header's word of that name; `body` branches to next.name."""
    return f"""loop.{name}:
  %i.{name} = phi i64 [ 0, %before.{name} ], [ %n.{name}, %next.{name} ]
  %more.{name} = icmp slt i64 %i.{name}, %{name}
  br i1 %more.{name}, label %do.{name}, label %{after}
do.{name}:
{body}
next.{name}:
  %n.{name} = add i64 %i.{name}, 1
  br label %loop.{name}
"""


def _entry(table: str, name: str, words: int, fields: tuple[str, ...]) -> str:
    """IR that loads the words of one entry of a table."""
    text = f"  %at.{name} = mul i64 %i.{name}, {words}\n  %t.{name} = inttoptr i64 %{table} to ptr\n"
    for number, field in enumerate(fields):
        text += (
            f"  %w{number}.{name} = add i64 %at.{name}, {number}\n"
            f"  %p{number}.{name} = getelementptr i64, ptr %t.{name}, i64 %w{number}.{name}\n"
            f"  %{field}.{name} = load i64, ptr %p{number}.{name}\n"
        )
    return text


def _filled(name: str) -> str:
    """IR of a hole's address: its base and offset."""
    return (
        f"  %b.{name} = getelementptr i64, ptr %bases, i64 %base.{name}\n  %v.{name} = load i64, ptr %b.{name}\n"
        f"  %address.{name} = add i64 %v.{name}, %offset.{name}\n"
        f"  %to.{name} = getelementptr i8, ptr %copy, i64 %pos.{name}\n"
    )


def _apart(side: str, base: int) -> str:
    """IR of %shares.side: whether P and an operand share memory."""
    return f"""  %base.{side}.p = getelementptr i64, ptr %bases, i64 {base}
  %base.{side} = load i64, ptr %base.{side}.p
  %from.{side} = add i64 %base.{side}, %low_{side}
  %till.{side} = add i64 %base.{side}, %high_{side}
  %before.{side} = icmp slt i64 %from.p, %till.{side}
  %behind.{side} = icmp slt i64 %from.{side}, %till.p
  %shares.{side} = and i1 %before.{side}, %behind.{side}
"""


def native_text() -> str:
    """`fill_and_launch(header, bases)`: 0, or the driver's error code with the number of its step above 32 bits; and
    `fill_three_and_launch`, which is given the bases that most calls have."""
    return f"""declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
{_fill_and_launch()}
{_fill_three_and_launch()}"""


def _loops() -> tuple[str, str, str]:
    """The bodies of the loops over holes, maps and steps."""
    holes = _entry("hole_table", "holes", WORDS_A_HOLE, ("pos", "base", "offset")) + _filled("holes")
    holes += "  store i64 %address.holes, ptr %to.holes\n  br label %next.holes"
    maps = _entry("map_table", "maps", WORDS_A_HOLE, ("pos", "base", "offset")) + _filled("maps")
    maps += """  %replace.f = inttoptr i64 %replace to ptr
  %code.maps = call i32 %replace.f(ptr %to.maps, i64 %address.maps)
  %bad.maps = icmp ne i32 %code.maps, 0
  br i1 %bad.maps, label %failed.maps, label %next.maps
failed.maps:
  %wide.maps = zext i32 %code.maps to i64
  ret i64 %wide.maps"""
    return holes, maps, _steps()


def _steps() -> str:
    """The body of the loop over steps: a launch, or a word set to zero."""
    steps = _entry("step_table", "steps", WORDS_A_STEP, ("kind", "function", "config", "params"))
    steps += f"""  %is.zero = icmp eq i64 %kind.steps, {ZERO}
  %config.at = getelementptr i8, ptr %copy, i64 %config.steps
  br i1 %is.zero, label %zero, label %launch.it
launch.it:
  %params.at = getelementptr i8, ptr %copy, i64 %params.steps
  %launch.f = inttoptr i64 %launch to ptr
  %function.p = inttoptr i64 %function.steps to ptr
  %code.launch = call i32 %launch.f(ptr %config.at, ptr %function.p, ptr %params.at, ptr null)
  br label %asked
zero:
  %word.at = load i64, ptr %config.at
  %stream.p = getelementptr i64, ptr %bases, i64 {STREAM}
  %stream = load i64, ptr %stream.p
  %memset.f = inttoptr i64 %memset to ptr
  %code.zero = call i32 %memset.f(i64 %word.at, i32 0, i64 1, i64 %stream)
  br label %asked
asked:
  %code.steps = phi i32 [ %code.launch, %launch.it ], [ %code.zero, %zero ]
  %bad.steps = icmp ne i32 %code.steps, 0
  br i1 %bad.steps, label %failed.steps, label %next.steps
failed.steps:
  %wide.steps = zext i32 %code.steps to i64
  %number.steps = shl i64 %i.steps, 32
  %answer.steps = or i64 %wide.steps, %number.steps
  ret i64 %answer.steps"""
    return steps


def _fill_and_launch() -> str:
    holes, maps, steps = _loops()
    words = "".join(_word(name) for name in HEADER)
    return f"""
define i64 @fill_and_launch(ptr %h, ptr %given) {{
entry:
{words}
  %bases = alloca [{SELF + 1} x i64], align 16
  call void @llvm.memcpy.p0.p0.i64(ptr %bases, ptr %given, i64 {8 * SELF}, i1 false)
  %base.p.p = getelementptr i64, ptr %bases, i64 {BASES.index("P")}
  %base.p = load i64, ptr %base.p.p
  %from.p = add i64 %base.p, %low_p
  %till.p = add i64 %base.p, %high_p
{_apart("m", BASES.index("M"))}{_apart("n", BASES.index("N"))}
  %shares = or i1 %shares.m, %shares.n
  br i1 %shares, label %overlapping, label %copying
overlapping:
  ret i64 {OVERLAPS}
copying:
  %copy = alloca i8, i64 %size, align 64
  %blob.p2 = inttoptr i64 %blob to ptr
  call void @llvm.memcpy.p0.p0.i64(ptr %copy, ptr %blob.p2, i64 %size, i1 false)
  %self = ptrtoint ptr %copy to i64
  %self.p = getelementptr i64, ptr %bases, i64 {SELF}
  store i64 %self, ptr %self.p
  br label %before.holes
before.holes:
  br label %loop.holes
{_loop("holes", holes, "before.maps")}
before.maps:
  br label %loop.maps
{_loop("maps", maps, "before.steps")}
before.steps:
  br label %loop.steps
{_loop("steps", steps, "done")}
done:
  ret i64 0
}}
"""


def _fill_three_and_launch() -> str:
    return f"""
define i64 @fill_three_and_launch(ptr %h, i64 %M, i64 %N, i64 %P, i64 %scratch, i64 %stream) {{
  %bases = alloca [{SELF} x i64], align 16
  call void @llvm.memset.p0.i64(ptr %bases, i8 0, i64 {8 * SELF}, i1 false)
{"".join(_stored(name, BASES.index(name)) for name in ("M", "N", "P", "scratch"))}{_stored("stream", STREAM)}
  %answer = call i64 @fill_and_launch(ptr %h, ptr %bases)
  ret i64 %answer
}}

"""


def _stored(name: str, base: int) -> str:
    return f"  %at.{name} = getelementptr i64, ptr %bases, i64 {base}\n  store i64 %{name}, ptr %at.{name}\n"


_launchers: list[tuple[Callable[..., int], Callable[..., int]]] = []


def launchers() -> tuple[Callable[..., int], Callable[..., int]]:
    """(with every base, with M, N, P and scratch alone): native where llvmlite is, else through ctypes.

    TILEWISE_NATIVE_LAUNCH=0 asks for ctypes. The choice is made once, and who asks meanwhile waits for it.
    """
    if not _launchers:
        with LLVM:
            if not _launchers:
                _launchers.append(_chosen())
    return _launchers[0]


def _chosen() -> tuple[Callable[..., int], Callable[..., int]]:
    if os.environ.get("TILEWISE_NATIVE_LAUNCH") == "0":
        return by_ctypes, _three_by_ctypes
    try:
        made = _compiled()
        machine_code.behind()  # LLVM is here now, and who launches once will plan again
        return made
    except (ImportError, RuntimeError, OSError):
        return by_ctypes, _three_by_ctypes


_engines: list[Any] = []  # what owns the machine code; it lives as long as the process


def _compiled() -> tuple[Callable[..., int], Callable[..., int]]:
    every, three = addresses()
    return builtin(every, "ww"), builtin(three, "w" * 6)


@lru_cache(maxsize=1)
def addresses() -> tuple[int, int]:
    """Of `fill_and_launch` and `fill_three_and_launch`, for machine code that has read the operands itself."""
    with LLVM:
        import llvmlite.binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_default_triple().create_target_machine(opt=2)
        module = llvm.parse_assembly(native_text())
        module.verify()
        engine = llvm.create_mcjit_compiler(module, machine)
        engine.finalize_object()
        _engines.append(engine)
        names = "fill_and_launch", "fill_three_and_launch"
        return engine.get_function_address(names[0]), engine.get_function_address(names[1])


def _three_by_ctypes(header: int, M: int, N: int, P: int, scratch: int, stream: int) -> int:
    bases = (ctypes.c_uint64 * SELF)()
    for name, value in (("M", M), ("N", N), ("P", P), ("scratch", scratch)):
        bases[BASES.index(name)] = value
    bases[STREAM] = stream
    return by_ctypes(header, ctypes.addressof(bases))


def by_ctypes(header: int, given: int) -> int:
    """The same as `fill_and_launch`, step by step in Python."""
    words = dict(zip(HEADER, (ctypes.c_int64 * len(HEADER)).from_address(header), strict=True))
    bases = [*(ctypes.c_int64 * SELF).from_address(given), 0]
    spans = {s: [bases[BASES.index(s.upper())] + words[f"{end}_{s}"] for end in ("low", "high")] for s in "mnp"}
    if any(spans["p"][0] < spans[s][1] and spans[s][0] < spans["p"][1] for s in "mn"):
        return OVERLAPS
    memory = ctypes.create_string_buffer(words["size"] + 64)
    copy = -(-ctypes.addressof(memory) // 64) * 64
    ctypes.memmove(copy, words["blob"], words["size"])
    bases[SELF] = copy
    replace = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64)(words["replace"])
    launch = ctypes.CFUNCTYPE(ctypes.c_int, *([ctypes.c_void_p] * 4))(words["launch"])
    zero = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64, ctypes.c_uint, ctypes.c_size_t, ctypes.c_void_p)
    for position, base, offset in _rows(words["hole_table"], words["holes"], WORDS_A_HOLE):
        ctypes.c_int64.from_address(copy + position).value = bases[base] + offset
    for position, base, offset in _rows(words["map_table"], words["maps"], WORDS_A_HOLE):
        if code := replace(copy + position, bases[base] + offset):
            return int(code)
    for number, (kind, function, config, params) in enumerate(_rows(words["step_table"], words["steps"], WORDS_A_STEP)):
        if kind == ZERO:
            at = ctypes.c_uint64.from_address(copy + config).value
            code = zero(words["memset"])(at, 0, 1, bases[STREAM])
        else:
            code = launch(copy + config, function, copy + params, None)
        if code:
            return int(code) | number << 32
    return 0


def _rows(table: int, count: int, width: int) -> list[list[int]]:
    words = (ctypes.c_int64 * (count * width)).from_address(table) if count else ()
    return [list(words[i * width : (i + 1) * width]) for i in range(count)]

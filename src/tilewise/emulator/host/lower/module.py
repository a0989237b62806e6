"""The whole program as one LLVM module: main, the functions it reaches, and the initialisation of globals."""

from __future__ import annotations

from typing import Any

from tilewise.emulator.host.lower import containment, virtual
from tilewise.emulator.host.lower.copied_states import COPY_STATES
from tilewise.emulator.host.lower.function import Lowering
from tilewise.emulator.host.lower.globals import initialise_globals
from tilewise.emulator.host.lower.marks import SHADOW
from tilewise.emulator.host.lower.program import Instance, Program
from tilewise.emulator.parse import types
from tilewise.emulator.sema.symbol_table import Environment

HEAD = """
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
declare ptr @llvm.frameaddress.p0(i32)
!0 = !{!"branch_weights", i32 1, i32 100000}
!1 = !{!"branch_weights", i32 100000, i32 1}
attributes #0 = { nounwind }
attributes #1 = { nounwind "target-cpu"="@@CPU@@" "target-features"="@@FEATURES@@" }
"""
KNOWN_FUNCTION = """
define internal i1 @known_function(ptr %f, i64 %form) #0 {{
entry:
  br label %more
more:
  %i = phi i64 [ 0, %entry ], [ %j, %next ]
  %on = icmp ult i64 %i, {}
  br i1 %on, label %look, label %no
look:
  %at = getelementptr {{ptr, i64}}, ptr @functions, i64 %i
  %function = load ptr, ptr %at
  %second = getelementptr i8, ptr %at, i64 8
  %its_form = load i64, ptr %second
  %same = icmp eq ptr %function, %f
  %same_form = icmp eq i64 %its_form, %form
  %both = and i1 %same, %same_form
  br i1 %both, label %yes, label %next
next:
  %j = add i64 %i, 1
  br label %more
yes:
  ret i1 true
no:
  ret i1 false
}}
"""
# the native stack, which only recursion uses up
NATIVE_STACK = """\
  %native = call ptr @llvm.frameaddress.p0(i32 0)
  %native_top = ptrtoint ptr %native to i64
  %native_least = load i64, ptr inttoptr (i64 {} to ptr)
  %native_deep = icmp ult i64 %native_top, %native_least
  %too_deep = or i1 %no_room, %native_deep"""
RUNTIME = {
    "rt_bad_read": "void (i64, i64, i32)", "rt_bad_write": "void (i64, i64, i32)",
    "rt_check_range": "void (i64, i64, i32, i32)", "rt_bad_index": "void (i64, i64, i32, i32)",
    "rt_uninitialised_variable": "void (i32, i32)", "rt_overflow": "void (i64, i64, i32, i32, i32)",
    "rt_divide": "void (i32, i32)",
    "rt_bad_call": "void (i64, i32)", "rt_outside_memory": "void (i64, i64)", "rt_static_destructor": "void (ptr, ptr)",
    "rt_null_call": "void (i32)", "rt_no_return": "void (i32, i32)", "rt_large_local": "void (i64, i64, i32, i32)",
    "rt_stack_overflow": "void (i32)", "rt_variable_length": "ptr (i64, i32, i32)",
    "rt_new": "ptr (i64, i64, i32, i32)", "rt_delete": "void (ptr, i32, i32)", "rt_element_count": "i64 (ptr, i64)",
    "rt_exception_memory": "ptr (i64)", "rt_raise": "void (ptr, i64, i32, ptr, i32)", "rt_rethrow": "void (i32)",
    "rt_catch": "ptr (i32)", "rt_uncaught": "void ()",
    "rt_throw": "void (i32, i32)", "rt_throw_what": "void (i32, ptr, i32)",
    "rt_invalid_access": "ptr (i64, i64, i32, i32)", "rt_barrier": "void (i32)",
    "rt_race": "void (i64, i32, i32, i32, i32)", "rt_divergent_barrier": "void (i32, i32)",
    "rt_all_initialised": "i32 (i64, i64, i64, i32)",
    "rt_assume_initialised": "void (ptr)",
    "rt_launch": "void (i32, ptr, ptr, ptr, i64, i64, ptr)",
}  # fmt: skip
INTRINSICS = {
    "llvm.sqrt.f64": "declare double @llvm.sqrt.f64(double)", "llvm.sqrt.f32": "declare float @llvm.sqrt.f32(float)",
    **{
        f"llvm.{name}.{short}": f"declare {kind} @llvm.{name}.{short}({kind}, {kind})"
        for name in ("minnum", "maxnum") for short, kind in (("f32", "float"), ("f64", "double"))
    },
    "llvm.fabs.f64": "declare double @llvm.fabs.f64(double)", "llvm.fabs.f32": "declare float @llvm.fabs.f32(float)",
}  # fmt: skip


def module_text(p: Program) -> str:
    """LLVM text; `start(argc, argv, bytes of stack)` runs the program and returns main's status."""
    main = _main(p)
    start = _start(p, main)
    while p.pending:
        p.write(p.pending.pop())
    first = _first_values(p)
    while p.pending:
        p.write(p.pending.pop())
    instances = list(p.instances.values())
    may_recurse = recursive(instances)
    out = [HEAD, COPY_STATES, containment.function(p), *declarations(p)]
    for instance in instances:
        out += framed(p, instance.text, instance.frame, instance.symbol in may_recurse, instance.node.name)
    out += virtual.tables_text(p)
    out += _known_functions(p)
    out += first
    out += start
    return "\n".join(out)


def _known_functions(p: Program) -> list[str]:
    """`known_function`: whether a pointer is a function of the program that has this `call_form`."""
    entries = [f"{{ptr, i64}} {{ptr {symbol}, i64 {form}}}" for symbol, form in p.address_taken.items()]
    table = f"@functions = internal constant [{len(entries)} x {{ptr, i64}}] [{', '.join(entries)}]"
    return [table, KNOWN_FUNCTION.format(len(entries))]


def _main(p: Program) -> Instance:
    candidates = [f for f in p.entities.functions.get("main", []) if f.tokens is not None]
    if not candidates:
        raise p.refusal("there is no main in this file: `tilewise check` judges kernels without one", 1)
    return p.instance(candidates[0], {}, None)


def _start(p: Program, main: Instance) -> list[str]:
    """Initialise the globals, then call main with as many arguments as it takes."""
    given = []
    for i, type_ in enumerate(main.parameters[:3]):
        given.append(f"{type_.llvm} " + ("%argc" if i == 0 else "%argv" if i == 1 else "null"))
    call = f"call {main.result.llvm} {main.symbol}({', '.join(given)})"
    uncaught: list[str] = []
    if p.catches:
        p.external("rt_uncaught")
        uncaught = ["  call void @rt_uncaught()"]
    body = [f"  {call}", *uncaught, "  ret i32 0"]
    if main.result is not types.VOID:
        body = [f"  %status = {call}", *uncaught, "  ret i32 %status"]
    return [
        "define i32 @start(i32 %argc, ptr %argv, i64 %room) {",
        "  %here = call ptr @llvm.frameaddress.p0(i32 0)",
        "  %top = ptrtoint ptr %here to i64",
        "  %least = sub i64 %top, %room",
        f"  store i64 %least, ptr inttoptr (i64 {p.memory.native_address} to ptr)",
        "  call void @first_values()",
        *body,
        "}",
    ]


def _first_values(p: Program) -> list[str]:
    b = Lowering(p, Environment(), False)
    initialise_globals(b)
    b.jump("leave")
    text = ["define void @first_values() #0 {", "entry:", *b.allocas, "@@ENTER@@", *b.slots, *b.lines, "leave:",
            "@@LEAVE@@", "  ret void", "}"]  # fmt: skip
    return framed(p, text, b.frame, False, "global")


def framed(p: Program, text: list[str], frame: int, recursive: bool, name: str) -> list[str]:
    """The function's text with a prologue and epilogue that allocate its frame, if it has one or is recursive."""
    if not frame and not recursive:
        return containment.contained(p, [line for line in text if not line.startswith("@@")])
    memory = p.memory
    size = -(-(frame + 64) // 16) * 16
    p.external("rt_stack_overflow")
    sp = f"ptr inttoptr (i64 {memory.stack_address} to ptr)"
    enter = [
        f"  %frame = load i64, {sp}",
        f"  %frame_end = add i64 %frame, {size}",
        f"  %no_room = icmp ugt i64 %frame_end, {memory.stack_end}",
        *(NATIVE_STACK.format(memory.native_address).split("\n") if recursive else []),
        f"  br i1 %{'too_deep' if recursive else 'no_room'}, label %overflow, label %go, !prof !0",
        "overflow:",
        f"  call void @rt_stack_overflow(i32 {p.name_number(name)})",
        "  br label %go",
        "go:",
        f"  store i64 %frame_end, {sp}",
    ]
    leave = [f"  store i64 %frame, {sp}"]
    if frame:
        leave += [
            f"  %shade = add i64 %frame, {memory.shift}{SHADOW}",
            "  %shade_pointer = inttoptr i64 %shade to ptr",
            f"  call void @llvm.memset.p0.i64(ptr %shade_pointer, i8 0, i64 {size}, i1 false)",
        ]
    out: list[str] = []
    for line in text:
        out += enter if line == "@@ENTER@@" else leave if line == "@@LEAVE@@" else [line]
    return containment.contained(p, out)


def recursive(instances: list[Instance]) -> set[str]:
    """Functions that may be recursive."""
    calls = {i.symbol: i.calls for i in instances}
    out: set[str] = set()
    for symbol in calls:
        seen: set[str] = set()
        stack = [c for c in calls[symbol] if c in calls]
        while stack:
            item = stack.pop()
            if item == symbol:
                out.add(symbol)
                break
            if item not in seen:
                seen.add(item)
                stack += [c for c in calls[item] if c in calls and c not in seen]
        if any(c.startswith("%") for c in calls[symbol]):  # a call through a pointer may reach any function
            out.add(symbol)
    return out


def declarations(p: Program) -> list[str]:
    out: list[str] = []
    p.external("rt_stack_overflow")
    for name, declaration in p.externals.items():
        if declaration:
            out.append(declaration)
        elif name in INTRINSICS:
            out.append(INTRINSICS[name])
        else:
            result, _, rest = RUNTIME[name].partition(" ")
            out.append(f"declare {result} @{name}{rest}")
    return out


def runtime_signature(name: str, declared: Any) -> tuple[str, list[str]]:
    """LLVM result and argument types of an external function."""
    text = (RUNTIME.get(name) or declared).removeprefix("declare ")
    arguments = text[text.index("(") + 1 : text.rindex(")")]
    return text.partition(" ")[0], [t.strip() for t in arguments.split(",") if t.strip()]

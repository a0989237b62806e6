"""The handler that XLA calls for a product inside jit, as LLVM IR.

It reads XLA's call frame at the offsets of its C header (`xla/ffi/api/c_api.h`, a stable interface): the buffers of M
and N, of P, of the winning k if requested and of a workspace, and the attribute with the address of a call record. A
product on one thread is launched from here; of integers, after a check that none stands for a missing edge. One on
several threads, or with missing edges, is launched by Python.
"""

from __future__ import annotations

from tilewise.arrays.ir_macros import expand

FRAME = {"extension": 8, "api": 16, "stage": 32, "args": 72, "rets": 112, "attrs": 160}  # offsets in bytes
METADATA, EXECUTE = 1, 3  # the extension that requests the version; the stage that executes
ERROR_CREATE = 48  # offset in the table of functions
INTERNAL = 13  # error code
# 64-bit fields of a call record. Addresses: `python` of a fallback, `check` of a function with argument `weights`,
# `message` of an error's text. `direct`: the handler may launch
RECORD = ("launch", "template", "swapped", "arg", "scratch", "direct", "python", "check", "weights", "message")


def handler_text(minor: int) -> str:
    """`handle(frame)`, for version 0.`minor` of the interface."""
    return expand(_stages_text(minor) + _operands_text() + _launch_text())


def _stages_text(minor: int) -> str:
    """Dispatch by the kind of call: a request for the version, a stage with nothing to do, or execution."""
    return f"""
define private ptr @elements(ptr %buffers, i64 %number) {{
  %buffer = load ptr, ptr %buffers[%number]
  %data = load ptr, ptr %buffer + 24
  ret ptr %data
}}

define ptr @handle(ptr %frame) {{
  %extension = load ptr, ptr %frame + {FRAME["extension"]}
  %stage = load i32, ptr %frame + {FRAME["stage"]}
  require icmp ne ptr %extension, null else staged
  %kind = load i32, ptr %extension + 8
  require icmp eq i32 %kind, {METADATA} else staged
  %metadata = load ptr, ptr %extension + 24
  store i32 0, ptr %metadata + 24
  store i32 {minor}, ptr %metadata + 28
  store i32 0, ptr %metadata + 32
  ret ptr null
staged:
  %runs = icmp eq i32 %stage, {EXECUTE}
  br i1 %runs, label %run, label %done
done:
  ret ptr null
"""


def _operands_text() -> str:
    """The record's fields, and the addresses of M, N, P, the winning k and the workspace."""
    fields = "\n".join(f"  %{name} = load i64, ptr %record[{i}]" for i, name in enumerate(RECORD))
    return f"""
run:
  %args = load ptr, ptr %frame + {FRAME["args"]}
  %rets = load ptr, ptr %frame + {FRAME["rets"]}
  %attrs = load ptr, ptr %frame + {FRAME["attrs"]}
  %scalar = load ptr, ptr %attrs[1]
  %value = load ptr, ptr %scalar + 8
  %record = load ptr, ptr %value
{fields}
  %M = call ptr @elements(ptr %args, i64 0)
  %N = call ptr @elements(ptr %args, i64 1)
  %P = call ptr @elements(ptr %rets, i64 0)
  %is.swapped = icmp ne i64 %swapped, 0
  %left = select i1 %is.swapped, ptr %N, ptr %M
  %right = select i1 %is.swapped, ptr %M, ptr %N
  br label %read
read:
  %wants = icmp ne i64 %arg, 0
  br i1 %wants, label %with.arg, label %workspace
with.arg:
  %winners = call ptr @elements(ptr %rets, i64 1)
  br label %workspace
workspace:
  %k = phi ptr [null, %read], [%winners, %with.arg]
  %needs = icmp ne i64 %scratch, 0
  br i1 %needs, label %align, label %go
align:
  %number = add i64 %arg, 1
  %raw = call ptr @elements(ptr %rets, i64 %number)
  %address = ptrtoint ptr %raw to i64
  %past = add i64 %address, 63
  %multiple = and i64 %past, -64
  %aligned = inttoptr i64 %multiple to ptr
  br label %go
"""


def _launch_text() -> str:
    """The launch, from here or by Python, and the error if that failed."""
    return f"""
go:
  %held = phi ptr [null, %workspace], [%aligned, %align]
  require icmp ne i64 %direct, 0 else by.python
  require icmp ne i64 %check, 0 else here
  %check.function = inttoptr i64 %check to ptr
  %range = inttoptr i64 %weights to ptr
  %within = call i64 %check.function(ptr %range, ptr %M, ptr %N)
  %all.weights = icmp ne i64 %within, 0
  br i1 %all.weights, label %here, label %by.python
here:
  %launch.function = inttoptr i64 %launch to ptr
  %job = inttoptr i64 %template to ptr
  call void %launch.function(ptr null, ptr %job, ptr %left, ptr %right, ptr %P, ptr %k, ptr %held)
  ret ptr null
by.python:
  %python.function = inttoptr i64 %python to ptr
  %status = call i64 %python.function(ptr %record, ptr %left, ptr %right, ptr %P, ptr %k, ptr %held)
  require icmp ne i64 %status, 0 else done
  %api = load ptr, ptr %frame + {FRAME["api"]}
  %create = load ptr, ptr %api + {ERROR_CREATE}
  %arguments = alloca [4 x i64]
  store i64 32, ptr %arguments[0]
  store i64 0, ptr %arguments[1]
  store i64 %message, ptr %arguments[2]
  store i64 {INTERNAL}, ptr %arguments[3]
  %error = call ptr %create(ptr %arguments)
  ret ptr %error
}}
"""

"""The handler that XLA calls for a product inside of jit, as LLVM IR.

It reads XLA's call frame where its C header has the fields (`xla/ffi/api/c_api.h`, a stable interface): the buffers of
M and N, those of P, of the winning k where they are wanted and of scratch memory, and the attribute that is the address
of a record. A product of one thread is launched from here, of integers once they are seen to be weights; one of several
threads, or with missing edges, goes by Python.
"""

from __future__ import annotations

FRAME = {"extension": 8, "api": 16, "stage": 32, "args": 72, "rets": 112, "attrs": 160}  # bytes from its start
METADATA, EXECUTE = 1, 3  # an extension that asks for the version; the stage that runs
ERROR_CREATE = 48  # in the table of functions: behind sizes, the version and a pointer
INTERNAL = 13  # the code of an error
# its words; `python`, `look` and `said` are addresses: of a function, of one that is told `weights`, of what went wrong
RECORD = ("launch", "template", "swapped", "arg", "scratch", "alone", "python", "look", "weights", "said")


def handler_text(minor: int) -> str:
    """`handle(frame)`, for version 0.`minor` of the interface."""
    return _asked_text(minor) + _operands_text() + _launch_text()


def _asked_text(minor: int) -> str:
    """Which call this is: for the version, for a stage with nothing to do, or to run."""
    return f"""
define private ptr @elements(ptr %buffers, i64 %number) {{
  %at = getelementptr ptr, ptr %buffers, i64 %number
  %buffer = load ptr, ptr %at
  %data.at = getelementptr i8, ptr %buffer, i64 24
  %data = load ptr, ptr %data.at
  ret ptr %data
}}

define ptr @handle(ptr %frame) {{
entry:
{_field("extension", "ptr")}
{_field("stage", "i32")}
  %asked = icmp ne ptr %extension, null
  br i1 %asked, label %which, label %staged
which:
  %kind.at = getelementptr i8, ptr %extension, i64 8
  %kind = load i32, ptr %kind.at
  %version = icmp eq i32 %kind, {METADATA}
  br i1 %version, label %tell, label %staged
tell:
  %metadata.at = getelementptr i8, ptr %extension, i64 24
  %metadata = load ptr, ptr %metadata.at
  %major.at = getelementptr i8, ptr %metadata, i64 24
  store i32 0, ptr %major.at
  %minor.at = getelementptr i8, ptr %metadata, i64 28
  store i32 {minor}, ptr %minor.at
  %traits.at = getelementptr i8, ptr %metadata, i64 32
  store i32 0, ptr %traits.at
  ret ptr null
staged:
  %runs = icmp eq i32 %stage, {EXECUTE}
  br i1 %runs, label %run, label %nothing
nothing:
  ret ptr null
"""


def _operands_text() -> str:
    """The record's words, and where M, N, P, the winning k and scratch memory are."""
    return f"""
run:
{_field("args", "ptr")}
{_field("rets", "ptr")}
{_field("attrs", "ptr")}
  %scalar.at = getelementptr ptr, ptr %attrs, i64 1
  %scalar = load ptr, ptr %scalar.at
  %value.at = getelementptr i8, ptr %scalar, i64 8
  %value = load ptr, ptr %value.at
  %record = load ptr, ptr %value
{_words()}
  %M = call ptr @elements(ptr %args, i64 0)
  %N = call ptr @elements(ptr %args, i64 1)
  %P = call ptr @elements(ptr %rets, i64 0)
  %turned = icmp ne i64 %swapped, 0
  %left = select i1 %turned, ptr %N, ptr %M
  %right = select i1 %turned, ptr %M, ptr %N
  %wants = icmp ne i64 %arg, 0
  br i1 %wants, label %where, label %room
where:
  %winners = call ptr @elements(ptr %rets, i64 1)
  br label %room
room:
  %k = phi ptr [null, %run], [%winners, %where]
  %needs = icmp ne i64 %scratch, 0
  br i1 %needs, label %space, label %go
space:
  %number = add i64 %arg, 1
  %raw = call ptr @elements(ptr %rets, i64 %number)
  %word = ptrtoint ptr %raw to i64
  %past = add i64 %word, 63
  %line = and i64 %past, -64
  %aligned = inttoptr i64 %line to ptr
  br label %go
"""


def _launch_text() -> str:
    """The launch, here or by Python, and an error where that failed."""
    return f"""
go:
  %held = phi ptr [null, %room], [%aligned, %space]
  %one = icmp ne i64 %alone, 0
  br i1 %one, label %looked, label %by.python
looked:
  %looks = icmp ne i64 %look, 0
  br i1 %looks, label %ask, label %here
ask:
  %look.function = inttoptr i64 %look to ptr
  %range = inttoptr i64 %weights to ptr
  %within = call i64 %look.function(ptr %range, ptr %M, ptr %N)
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
  %good = icmp eq i64 %status, 0
  br i1 %good, label %nothing, label %wrong
wrong:
{_field("api", "ptr")}
  %create.at = getelementptr i8, ptr %api, i64 {ERROR_CREATE}
  %create = load ptr, ptr %create.at
  %arguments = alloca [4 x i64]
  store i64 32, ptr %arguments
  %none.at = getelementptr i64, ptr %arguments, i64 1
  store i64 0, ptr %none.at
  %said.at = getelementptr i64, ptr %arguments, i64 2
  store i64 %said, ptr %said.at
  %code.at = getelementptr i64, ptr %arguments, i64 3
  store i64 {INTERNAL}, ptr %code.at
  %error = call ptr %create(ptr %arguments)
  ret ptr %error
}}
"""


def _field(name: str, kind: str) -> str:
    return f"  %{name}.at = getelementptr i8, ptr %frame, i64 {FRAME[name]}\n  %{name} = load {kind}, ptr %{name}.at"


def _words() -> str:
    return "\n".join(
        f"  %{name}.word = getelementptr i64, ptr %record, i64 {i}\n  %{name} = load i64, ptr %{name}.word"
        for i, name in enumerate(RECORD)
    )

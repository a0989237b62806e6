"""The native function that follows a table of decisions, as LLVM IR.

A row has five fields: an operation, registers a and b, and two targets. Arithmetic sets register `yes`, a comparison
goes to row `yes` or `no` (0: not known yet), "store" writes register b to place a, "end" returns a.
"""

from __future__ import annotations

from tilewise.arrays.ir_macros import expand
from tilewise.backends.cpu.kernels.shared.job import BYTES_HEADER

FIELDS, REGISTERS = 5, 256
OPERATIONS = ("constant", "add", "sub", "mul", "div", "rem", "lt", "le", "eq", "store", "end")


def find_text(inputs: int) -> str:
    """`find(table, bytes, inputs...)`: the number of a path, -1 where it is unknown."""
    given = "".join(f", i64 %x{at}" for at in range(inputs))
    stored = "\n".join(f"  store i64 %x{at}, ptr %registers[{at}]" for at in range(inputs))
    targets = " ".join(f"i64 {code}, label %{name}" for code, name in enumerate(OPERATIONS))
    compared = "".join(
        f"{name}:\n  %{name}.holds = icmp {relation} i64 %x, %y\n  br label %compared\n"
        for name, relation in (("lt", "slt"), ("le", "sle"), ("eq", "eq"))
    )
    holds = ", ".join(f"[%{name}.holds, %{name}]" for name in ("lt", "le", "eq"))
    return expand(f"""
define i64 @find(i64 %table, i64 %object{given}) {{
entry:
  %registers = alloca [{REGISTERS} x i64], align 8
{stored}
  %rows = inttoptr i64 %table to ptr
  %bytes = inttoptr i64 %object to ptr
  %places = getelementptr i8, ptr %bytes, i64 {BYTES_HEADER}
  br label %next
next:
  %at = phi i64 [0, %entry], [%following, %set], [%following, %store], [%target, %go]
  %row = getelementptr [{FIELDS} x i64], ptr %rows, i64 %at
  %following = add i64 %at, 1
  %operation = load i64, ptr %row[0]
  %a = load i64, ptr %row[1]
  %b = load i64, ptr %row[2]
  %yes = load i64, ptr %row[3]
  %no = load i64, ptr %row[4]
  %a.masked = and i64 %a, {REGISTERS - 1}
  %b.masked = and i64 %b, {REGISTERS - 1}
  %x = load i64, ptr %registers[%a.masked]
  %y = load i64, ptr %registers[%b.masked]
  switch i64 %operation, label %unknown [ {targets} ]
constant:
  br label %set
{_arithmetic_text()}{compared}compared:
  %holds = phi i1 {holds}
  %target = select i1 %holds, i64 %yes, i64 %no
  br label %go
go:
  %known = icmp ne i64 %target, 0
  br i1 %known, label %next, label %unknown
store:
  store i64 %y, ptr %places[%a]
  br label %next
end:
  ret i64 %a
unknown:
  ret i64 -1
}}
""")


def _arithmetic_text() -> str:
    """Operations of x and y, and the register that is set; quotients are rounded down, as in Python."""
    plain = "".join(f"{name}:\n  %{name}.is = {name} i64 %x, %y\n  br label %set\n" for name in ("add", "sub", "mul"))
    results = ", ".join(f"[%{name}.is, %{name}]" for name in ("add", "sub", "mul", "div", "rem"))
    return f"""{plain}div:
  %quotient = sdiv i64 %x, %y
  %rest = srem i64 %x, %y
  %mixed = xor i64 %rest, %y
  %below = icmp slt i64 %mixed, 0
  %inexact = icmp ne i64 %rest, 0
  %lower = and i1 %below, %inexact
  %less = sext i1 %lower to i64
  %div.is = add i64 %quotient, %less
  br label %set
rem:
  %over = srem i64 %x, %y
  %over.mixed = xor i64 %over, %y
  %over.below = icmp slt i64 %over.mixed, 0
  %over.some = icmp ne i64 %over, 0
  %wraps = and i1 %over.below, %over.some
  %added = select i1 %wraps, i64 %y, i64 0
  %rem.is = add i64 %over, %added
  br label %set
set:
  %result = phi i64 [%a, %constant], {results}
  store i64 %result, ptr %registers[%yes]
  br label %next
"""

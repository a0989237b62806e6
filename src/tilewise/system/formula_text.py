"""The LLVM text of formulas: the least value over a table, what a table gives a search, and the search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewise.system.python_to_llvm import Attributes, Module

DECLARED = """
declare double @llvm.sqrt.f64(double)
declare double @pow(double, double)
declare double @log2(double)
declare double @exp(double)
declare double @expm1(double)
declare double @erf(double)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define private i64 @gcd(i64 %a, i64 %b) {
entry:
  br label %test
test:
  %x = phi i64 [ %a, %entry ], [ %y, %step ]
  %y = phi i64 [ %b, %entry ], [ %rest, %step ]
  %done = icmp eq i64 %y, 0
  br i1 %done, label %found, label %step
step:
  %rest = srem i64 %x, %y
  br label %test
found:
  %minus = sub i64 0, %x
  %below = icmp slt i64 %x, 0
  %size = select i1 %below, i64 %minus, i64 %x
  ret i64 %size
}
"""


def translated(attributes: Attributes, formulas: Sequence[Any], weighings: Sequence[Any] = ()) -> str:
    """The LLVM text of `least.0(rows, count, width, given, answer)` and so on for formulas, of `offer.0(rows, count,
    width, numbers, figures, seconds and passes, answer)`, and of `search.0(tables, count, numbers, kind, answer)`."""
    module, made = Module(attributes), list[str]()

    def name(function: Callable[..., Any]) -> str:
        return module.function(function).name

    for number, formula in enumerate(formulas):
        text = LEAST
        if formula.given is not None:
            length = str(module.function(formula.given).length)
            text += OFFER.replace("TAKES", name(formula.takes)).replace("GIVEN", name(formula.given))
            text = text.replace("PASSES", name(formula.passes)).replace("FINAL", name(formula.final))
            text = text.replace("LENGTH", length)
        else:
            text += NOTHING
        made.append(text.replace("NUMBER", str(number)).replace("FORMULA", name(formula.function)))
    for number, one in enumerate(weighings):
        text = SEARCH.replace("ADMITS", name(one.admits)).replace("KNOWN", name(one.known))
        made.append(text.replace("COST", name(one.cost)).replace("NUMBER", str(number)))
    return DECLARED + module.text() + "".join(made)


LEAST = """
define i64 @least.NUMBER(ptr %rows, i64 %count, i64 %width, ptr %given, ptr %answer) {
entry:
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %j, %evaluate ]
  %best = phi i64 [ 0, %entry ], [ %better, %evaluate ]
  %least = phi double [ 0x7FF0000000000000, %entry ], [ %lower, %evaluate ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %evaluate, label %done
evaluate:
  %skip = mul i64 %i, %width
  %row = getelementptr double, ptr %rows, i64 %skip
  %value = call double FORMULA(ptr %row, ptr %given)
  %below = fcmp olt double %value, %least
  %better = select i1 %below, i64 %i, i64 %best
  %lower = select i1 %below, double %value, double %least
  %j = add i64 %i, 1
  %at = getelementptr double, ptr %answer, i64 %j
  store double %value, ptr %at
  br label %next
done:
  store double %least, ptr %answer
  ret i64 %best
}
"""
OFFER = """
define i64 @offer.NUMBER(ptr %rows, i64 %count, i64 %width, ptr %numbers, ptr %figures, ptr %two, ptr %answer) {
  %given = alloca [LENGTH x double]
  %may = call i1 TAKES(ptr %numbers, ptr %figures)
  br i1 %may, label %look, label %never
never:
  ret i64 -1
look:
  call void GIVEN(ptr %numbers, ptr %figures, ptr %given)
  %best = call i64 @least.NUMBER(ptr %rows, i64 %count, i64 %width, ptr %given, ptr %answer)
  %least = load double, ptr %answer
  %possible = fcmp olt double %least, 0x7FF0000000000000
  br i1 %possible, label %finish, label %never
finish:
  %skip = mul i64 %best, %width
  %row = getelementptr double, ptr %rows, i64 %skip
  %seconds = call double FINAL(ptr %row, ptr %given, double %least)
  store double %seconds, ptr %two
  %passes = call i64 PASSES(ptr %row, ptr %given)
  %float = sitofp i64 %passes to double
  %behind = getelementptr double, ptr %two, i64 1
  store double %float, ptr %behind
  ret i64 %best
}
"""
NOTHING = """
define i64 @offer.NUMBER() {
  ret i64 -1
}
"""
# The answer: cost, two more numbers, seconds, passes, row and table of the best; from 8 on the same of a group, from 16
# on of a table, from 24 on what is known, from 64 on the values of a table.
SEARCH = """
define i64 @search.NUMBER(ptr %tables, i64 %count, ptr %numbers, ptr %kind, ptr %answer) {
entry:
  %group = getelementptr double, ptr %answer, i64 8
  %group.seconds = getelementptr double, ptr %answer, i64 11
  %group.passes = getelementptr double, ptr %answer, i64 12
  %group.table = getelementptr double, ptr %answer, i64 14
  %own = getelementptr double, ptr %answer, i64 16
  %own.seconds = getelementptr double, ptr %answer, i64 19
  %own.row = getelementptr double, ptr %answer, i64 21
  %own.table = getelementptr double, ptr %answer, i64 22
  %known = getelementptr double, ptr %answer, i64 24
  %values = getelementptr double, ptr %answer, i64 64
  store double 0x7FF0000000000000, ptr %answer
  store double 0x7FF0000000000000, ptr %group.seconds
  call void KNOWN(ptr %numbers, ptr %kind, ptr %known)
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %j, %on ]
  %j = add i64 %i, 1
  %more = icmp slt i64 %i, %count
  br i1 %more, label %look, label %done
look:
  %skip = mul i64 %i, 8
  %table = getelementptr ptr, ptr %tables, i64 %skip
  %offer = load ptr, ptr %table
  %rows.at = getelementptr ptr, ptr %table, i64 1
  %rows = load ptr, ptr %rows.at
  %count.at = getelementptr i64, ptr %table, i64 2
  %row.count = load i64, ptr %count.at
  %width.at = getelementptr i64, ptr %table, i64 3
  %width = load i64, ptr %width.at
  %figures.at = getelementptr ptr, ptr %table, i64 4
  %figures = load ptr, ptr %figures.at
  %limits.at = getelementptr ptr, ptr %table, i64 5
  %limits = load ptr, ptr %limits.at
  %last.at = getelementptr i64, ptr %table, i64 7
  %last = load i64, ptr %last.at
  %is.last = icmp ne i64 %last, 0
  %may = call i1 ADMITS(ptr %numbers, ptr %limits)
  br i1 %may, label %ask, label %behind
ask:
  %row = call i64 %offer(
    ptr %rows, i64 %row.count, i64 %width, ptr %numbers, ptr %figures, ptr %own.seconds, ptr %values)
  %some = icmp sge i64 %row, 0
  br i1 %some, label %compare, label %behind
compare:
  %row.float = sitofp i64 %row to double
  store double %row.float, ptr %own.row
  %table.float = sitofp i64 %i to double
  store double %table.float, ptr %own.table
  %seconds = load double, ptr %own.seconds
  %least = load double, ptr %group.seconds
  %below = fcmp olt double %seconds, %least
  br i1 %below, label %take, label %behind
take:
  call void @llvm.memcpy.p0.p0.i64(ptr %group, ptr %own, i64 64, i1 false)
  br label %behind
behind:
  br i1 %is.last, label %weigh, label %on
weigh:
  %found = load double, ptr %group.seconds
  %possible = fcmp olt double %found, 0x7FF0000000000000
  br i1 %possible, label %cost, label %on
cost:
  %passes = load double, ptr %group.passes
  %whole = fptosi double %passes to i64
  %chosen.float = load double, ptr %group.table
  %chosen = fptosi double %chosen.float to i64
  %fit.skip = mul i64 %chosen, 8
  %chosen.at = getelementptr ptr, ptr %tables, i64 %fit.skip
  %fit.at = getelementptr ptr, ptr %chosen.at, i64 6
  %fit = load ptr, ptr %fit.at
  call void COST(ptr %numbers, ptr %limits, ptr %fit, ptr %known, double %found, i64 %whole, ptr %group)
  store double %found, ptr %group.seconds
  %own.cost = load double, ptr %group
  %best = load double, ptr %answer
  %better = fcmp olt double %own.cost, %best
  br i1 %better, label %keep, label %drop
keep:
  call void @llvm.memcpy.p0.p0.i64(ptr %answer, ptr %group, i64 64, i1 false)
  br label %drop
drop:
  store double 0x7FF0000000000000, ptr %group.seconds
  br label %on
on:
  br label %next
done:
  %end = load double, ptr %answer
  %any = fcmp olt double %end, 0x7FF0000000000000
  %answered = zext i1 %any to i64
  ret i64 %answered
}
"""

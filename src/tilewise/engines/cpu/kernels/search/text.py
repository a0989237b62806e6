"""Dijkstra's algorithm with a binary heap, as LLVM IR: one source a task, its row of lengths written in place.

A node goes onto the heap whenever its length gets better; an entry that is worse than its node's length by the time it
comes up is passed over. So the heap holds at most one entry for each edge, and nothing is ever looked up in it.
"""

from __future__ import annotations

from tilewise.engines.cpu.kernels.shared.job import WORDS

ENTRY = "{ double, i64 }"  # of the heap: a length, and the node that it leads to

PUSH = f"""
define private void @push(ptr %heap, i64 %size, double %length, i64 %node) {{
entry:
  br label %up
up:
  %at = phi i64 [%size, %entry], [%above, %move]
  %top = icmp eq i64 %at, 0
  br i1 %top, label %put, label %look
look:
  %before = sub i64 %at, 1
  %above = lshr i64 %before, 1
  %place = getelementptr {ENTRY}, ptr %heap, i64 %above
  %held = load double, ptr %place
  %right = fcmp ole double %held, %length
  br i1 %right, label %put, label %move
move:
  %from = load {ENTRY}, ptr %place
  %to = getelementptr {ENTRY}, ptr %heap, i64 %at
  store {ENTRY} %from, ptr %to
  br label %up
put:
  %here = getelementptr {ENTRY}, ptr %heap, i64 %at
  store double %length, ptr %here
  %beside = getelementptr {ENTRY}, ptr %heap, i64 %at, i32 1
  store i64 %node, ptr %beside
  ret void
}}
"""

# the last entry goes to the top and down again; %size is without it
SETTLE = f"""
define private void @settle(ptr %heap, i64 %size) {{
entry:
  %last = getelementptr {ENTRY}, ptr %heap, i64 %size
  %length = load double, ptr %last
  %beside = getelementptr {ENTRY}, ptr %heap, i64 %size, i32 1
  %node = load i64, ptr %beside
  br label %down
down:
  %at = phi i64 [0, %entry], [%child, %move]
  %double = shl i64 %at, 1
  %left = add i64 %double, 1
  %none = icmp sge i64 %left, %size
  br i1 %none, label %put, label %look
look:
  %right = add i64 %double, 2
  %left.at = getelementptr {ENTRY}, ptr %heap, i64 %left
  %left.length = load double, ptr %left.at
  %right.at = getelementptr {ENTRY}, ptr %heap, i64 %right
  %right.length = load double, ptr %right.at
  %two = icmp slt i64 %right, %size
  %nearer = fcmp olt double %right.length, %left.length
  %other = and i1 %two, %nearer
  %child = select i1 %other, i64 %right, i64 %left
  %child.length = select i1 %other, double %right.length, double %left.length
  %done = fcmp oge double %child.length, %length
  br i1 %done, label %put, label %move
move:
  %from.at = getelementptr {ENTRY}, ptr %heap, i64 %child
  %from = load {ENTRY}, ptr %from.at
  %to = getelementptr {ENTRY}, ptr %heap, i64 %at
  store {ENTRY} %from, ptr %to
  br label %down
put:
  %here = getelementptr {ENTRY}, ptr %heap, i64 %at
  store double %length, ptr %here
  %next = getelementptr {ENTRY}, ptr %heap, i64 %at, i32 1
  store i64 %node, ptr %next
  ret void
}}
"""


def search_module(tracks: bool) -> str:
    """`search`, a task; `tracks`: the node before each target is kept too.

    Words of the job: M the rows' starts, N the columns (int32), P the weights, at_m the sources, arg the lengths, at_a
    the nodes before, n the nodes; a worker's heap is in its workspace.
    """
    forget = keep = ""
    if tracks:
        forget = "  %b.at = getelementptr i64, ptr %before, i64 %i\n  store i64 -1, ptr %b.at"
        keep = "  %v.before = getelementptr i64, ptr %before, i64 %v\n  store i64 %u, ptr %v.before"
    return PUSH + SETTLE + _cleared(forget) + TAKE + _walked(keep)


def _cleared(forget: str) -> str:
    """The job's words, and a row of lengths that are all infinite."""
    words = "\n".join(
        f"  %{name}.at = getelementptr i64, ptr %job, i64 {WORDS.index(name)}\n  %{name} = load i64, ptr %{name}.at"
        for name in ("M", "N", "P", "n", "at_m", "arg", "at_a", "workspace", "workspace_bytes")
    )
    pointers = "\n".join(
        f"  %{name} = inttoptr i64 %{word} to ptr"
        for name, word in (
            ("starts", "M"), ("columns", "N"), ("weights", "P"), ("sources", "at_m"), ("lengths", "arg"),
            ("befores", "at_a"),
        )
    )  # fmt: skip
    return f"""
define void @search(ptr %job, i64 %task, i64 %worker) {{
entry:
{words}
{pointers}
  %own = mul i64 %worker, %workspace_bytes
  %heap.at = add i64 %workspace, %own
  %heap = inttoptr i64 %heap.at to ptr
  %source.at = getelementptr i64, ptr %sources, i64 %task
  %source = load i64, ptr %source.at
  %row = mul i64 %task, %n
  %length = getelementptr double, ptr %lengths, i64 %row
  %before = getelementptr i64, ptr %befores, i64 %row
  br label %clear
clear:
  %i = phi i64 [0, %entry], [%i.next, %clear]
  %l.at = getelementptr double, ptr %length, i64 %i
  store double 0x7FF0000000000000, ptr %l.at
{forget}
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %n
  br i1 %more, label %clear, label %begin
"""


# the source, then whichever node is nearest; an entry that is late is passed over
TAKE = f"""begin:
  %s.at = getelementptr double, ptr %length, i64 %source
  store double 0.0, ptr %s.at
  call void @push(ptr %heap, i64 0, double 0.0, i64 %source)
  br label %take
take:
  %size = phi i64 [1, %begin], [%left, %skip], [%e.size, %edges]
  %some = icmp sgt i64 %size, 0
  br i1 %some, label %top, label %done
top:
  %d = load double, ptr %heap
  %u.at = getelementptr {ENTRY}, ptr %heap, i64 0, i32 1
  %u = load i64, ptr %u.at
  %left = sub i64 %size, 1
  call void @settle(ptr %heap, i64 %left)
  %u.length = getelementptr double, ptr %length, i64 %u
  %best = load double, ptr %u.length
  %late = fcmp ogt double %d, %best
  br i1 %late, label %skip, label %walk
skip:
  br label %take
"""


def _walked(keep: str) -> str:
    """The edges of the node at hand, and what they make better."""
    return f"""walk:
  %start.at = getelementptr i64, ptr %starts, i64 %u
  %start = load i64, ptr %start.at
  %stop.at = getelementptr i64, ptr %start.at, i64 1
  %stop = load i64, ptr %stop.at
  br label %edges
edges:
  %e = phi i64 [%start, %walk], [%e.next, %next]
  %e.size = phi i64 [%left, %walk], [%n.size, %next]
  %again = icmp slt i64 %e, %stop
  br i1 %again, label %edge, label %take
edge:
  %v.at = getelementptr i32, ptr %columns, i64 %e
  %v.narrow = load i32, ptr %v.at
  %v = zext i32 %v.narrow to i64
  %w.at = getelementptr double, ptr %weights, i64 %e
  %w = load double, ptr %w.at
  %sum = fadd double %d, %w
  %v.length = getelementptr double, ptr %length, i64 %v
  %known = load double, ptr %v.length
  %better = fcmp olt double %sum, %known
  br i1 %better, label %improve, label %next
improve:
  store double %sum, ptr %v.length
{keep}
  call void @push(ptr %heap, i64 %e.size, double %sum, i64 %v)
  %grown = add i64 %e.size, 1
  br label %next
next:
  %n.size = phi i64 [%e.size, %edge], [%grown, %improve]
  %e.next = add i64 %e, 1
  br label %edges
done:
  ret void
}}
"""

"""Dijkstra's algorithm as LLVM IR: one source a task, its row of lengths written in place.

The heap has four children to a node, side by side on a line of the cache, and each node of the graph at most once:
where it stands is kept, and a length that gets better moves it up. A node has a place in the heap from its first finite
length on, so places need no first value. Entries behind the end are infinite: there are always four to compare.
"""

from __future__ import annotations

from tilewise.backends.cpu.kernels.shared.job import JOB_FIELDS

ENTRY = "{ double, i64 }"  # of the heap: a length, and the node that it leads to

# an entry at its place or above, its node's new place kept
RISE = f"""
define private void @rise(ptr %heap, ptr %places, i64 %from, double %length, i64 %node) {{
entry:
  br label %up
up:
  %at = phi i64 [%from, %entry], [%above, %move]
  %top = icmp eq i64 %at, 0
  br i1 %top, label %put, label %look
look:
  %before = sub i64 %at, 1
  %above = lshr i64 %before, 2
  %place = getelementptr {ENTRY}, ptr %heap, i64 %above
  %held = load double, ptr %place
  %right = fcmp ole double %held, %length
  br i1 %right, label %put, label %move
move:
  %other.at = getelementptr {ENTRY}, ptr %heap, i64 %above, i32 1
  %other = load i64, ptr %other.at
  %to = getelementptr {ENTRY}, ptr %heap, i64 %at
  store double %held, ptr %to
  %to.node = getelementptr {ENTRY}, ptr %heap, i64 %at, i32 1
  store i64 %other, ptr %to.node
  %other.place = getelementptr i32, ptr %places, i64 %other
  %at.narrow = trunc i64 %at to i32
  store i32 %at.narrow, ptr %other.place
  br label %up
put:
  %here = getelementptr {ENTRY}, ptr %heap, i64 %at
  store double %length, ptr %here
  %beside = getelementptr {ENTRY}, ptr %heap, i64 %at, i32 1
  store i64 %node, ptr %beside
  %own.place = getelementptr i32, ptr %places, i64 %node
  %own.narrow = trunc i64 %at to i32
  store i32 %own.narrow, ptr %own.place
  ret void
}}
"""

# the last entry goes to the top and down again; %size is without it
SETTLE = f"""
define private void @settle(ptr %heap, ptr %places, i64 %size) {{
entry:
  %last = getelementptr {ENTRY}, ptr %heap, i64 %size
  %length = load double, ptr %last
  %beside = getelementptr {ENTRY}, ptr %heap, i64 %size, i32 1
  %node = load i64, ptr %beside
  store double 0x7FF0000000000000, ptr %last
  %empty = icmp eq i64 %size, 0
  br i1 %empty, label %done, label %down
down:
  %at = phi i64 [0, %entry], [%child, %move]
  %four = shl i64 %at, 2
  %first = add i64 %four, 1
  %none = icmp sge i64 %first, %size
  br i1 %none, label %put, label %look
look:
  %c0.at = getelementptr {ENTRY}, ptr %heap, i64 %first
  %c1.at = getelementptr {ENTRY}, ptr %c0.at, i64 1
  %c2.at = getelementptr {ENTRY}, ptr %c0.at, i64 2
  %c3.at = getelementptr {ENTRY}, ptr %c0.at, i64 3
  %c0 = load double, ptr %c0.at
  %c1 = load double, ptr %c1.at
  %c2 = load double, ptr %c2.at
  %c3 = load double, ptr %c3.at
  %i1 = add i64 %first, 1
  %i2 = add i64 %first, 2
  %i3 = add i64 %first, 3
  %less1 = fcmp olt double %c1, %c0
  %a = select i1 %less1, double %c1, double %c0
  %ia = select i1 %less1, i64 %i1, i64 %first
  %less3 = fcmp olt double %c3, %c2
  %b = select i1 %less3, double %c3, double %c2
  %ib = select i1 %less3, i64 %i3, i64 %i2
  %less = fcmp olt double %b, %a
  %nearest = select i1 %less, double %b, double %a
  %child = select i1 %less, i64 %ib, i64 %ia
  %settled = fcmp oge double %nearest, %length
  br i1 %settled, label %put, label %move
move:
  %from.node = getelementptr {ENTRY}, ptr %heap, i64 %child, i32 1
  %moved = load i64, ptr %from.node
  %to = getelementptr {ENTRY}, ptr %heap, i64 %at
  store double %nearest, ptr %to
  %to.node = getelementptr {ENTRY}, ptr %heap, i64 %at, i32 1
  store i64 %moved, ptr %to.node
  %moved.place = getelementptr i32, ptr %places, i64 %moved
  %at.narrow = trunc i64 %at to i32
  store i32 %at.narrow, ptr %moved.place
  br label %down
put:
  %here = getelementptr {ENTRY}, ptr %heap, i64 %at
  store double %length, ptr %here
  %next = getelementptr {ENTRY}, ptr %heap, i64 %at, i32 1
  store i64 %node, ptr %next
  %own.place = getelementptr i32, ptr %places, i64 %node
  %own.narrow = trunc i64 %at to i32
  store i32 %own.narrow, ptr %own.place
  br label %done
done:
  ret void
}}
"""


def search_module(tracks: bool) -> str:
    """`search`, a task; `tracks`: the node before each target is kept too.

    Fields of the job: M the rows' starts, N the columns (int32), P the weights, at_m the sources, arg the lengths, at_a
    the nodes before, n the nodes; a worker's workspace has its heap, all infinite, and from `sums_at` on the places.
    """
    forget = keep = ""
    if tracks:
        forget = "  %b.at = getelementptr i64, ptr %before, i64 %i\n  store i64 -1, ptr %b.at"
        keep = "  %v.before = getelementptr i64, ptr %before, i64 %v\n  store i64 %u, ptr %v.before"
    return RISE + SETTLE + _cleared(forget) + TAKE + _walked(keep)


def _cleared(forget: str) -> str:
    """The job's fields, and a row of lengths that are all infinite."""
    fields = "\n".join(
        f"  %{name}.at = getelementptr i64, ptr %job, i64 {JOB_FIELDS.index(name)}\n"
        f"  %{name} = load i64, ptr %{name}.at"
        for name in ("M", "N", "P", "n", "at_m", "arg", "at_a", "workspace", "workspace_bytes", "sums_at")
    )
    pointers = "\n".join(
        f"  %{name} = inttoptr i64 %{field} to ptr"
        for name, field in (
            ("starts", "M"), ("columns", "N"), ("weights", "P"), ("sources", "at_m"), ("lengths", "arg"),
            ("befores", "at_a"),
        )
    )  # fmt: skip
    return f"""
define void @search(ptr %job, i64 %task, i64 %worker) {{
entry:
{fields}
{pointers}
  %own = mul i64 %worker, %workspace_bytes
  %heap.at = add i64 %workspace, %own
  %heap = inttoptr i64 %heap.at to ptr
  %places = getelementptr i8, ptr %heap, i64 %sums_at
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


# the source, then whichever node is nearest
TAKE = f"""begin:
  %s.at = getelementptr double, ptr %length, i64 %source
  store double 0.0, ptr %s.at
  call void @rise(ptr %heap, ptr %places, i64 0, double 0.0, i64 %source)
  br label %take
take:
  %size = phi i64 [1, %begin], [%e.size, %edges]
  %some = icmp sgt i64 %size, 0
  br i1 %some, label %top, label %done
top:
  %d = load double, ptr %heap
  %u.at = getelementptr {ENTRY}, ptr %heap, i64 0, i32 1
  %u = load i64, ptr %u.at
  %left = sub i64 %size, 1
  call void @settle(ptr %heap, ptr %places, i64 %left)
  br label %walk
"""


def _walked(keep: str) -> str:
    """The edges of the current node, and the lengths that they improve."""
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
  %new = fcmp oeq double %known, 0x7FF0000000000000
  %v.place = getelementptr i32, ptr %places, i64 %v
  %stood.narrow = load i32, ptr %v.place
  %stood = zext i32 %stood.narrow to i64
  %from = select i1 %new, i64 %e.size, i64 %stood
  call void @rise(ptr %heap, ptr %places, i64 %from, double %sum, i64 %v)
  %one = zext i1 %new to i64
  %grown = add i64 %e.size, %one
  br label %next
next:
  %n.size = phi i64 [%e.size, %edge], [%grown, %improve]
  %e.next = add i64 %e, 1
  br label %edges
done:
  ret void
}}
"""

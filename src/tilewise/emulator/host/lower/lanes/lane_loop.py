"""Text of a function that loops over the active lanes of a mask."""

from __future__ import annotations

LANE_LOOP = """
define internal {head} #0 {{
entry:
{before}
  br label %lane
lane:
  %l = phi i64 [ 0, %entry ], [ %l1, %next ]
  %number = trunc i64 %l to {bits}
  %shifted = lshr {bits} %mask, %number
  %on = trunc {bits} %shifted to i1
  br i1 %on, label %active, label %next
active:
{body}
next:
  %l1 = add i64 %l, 1
  %more = icmp ult i64 %l1, {width}
  br i1 %more, label %lane, label %done
done:
{after}
}}
"""


def lane_loop(head: str, body: str, bits: str, width: int, before: str = "", after: str = "  ret void") -> str:
    """`body` runs with the lane's number in %l and ends with a branch to %next; the mask is %mask."""
    return LANE_LOOP.format(head=head, body=body, bits=bits, width=width, before=before, after=after)

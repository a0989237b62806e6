"""Marks in LLVM's text (comments to LLVM) by which the lowering says what it has seen to; read by `containment`."""

from __future__ import annotations

OK = " ;ok"  # ends a load or store whose address was checked, or a step inside an array that is small
WITHIN = " ;within"  # ends a step inside an array: as good as the address of the array
SHADOW = " ;shadow"  # ends the sum that leads from bytes to their states
INSIDE = "  ;inside "  # a line of its own: this pointer was compared with the ends of the memory
SMALL = 1 << 20  # bytes of an array that OK may step over

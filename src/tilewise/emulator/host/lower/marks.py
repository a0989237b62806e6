"""Comments in LLVM text by which the lowering marks what `containment` need not check."""

from __future__ import annotations

OK = " ;ok"  # ends a load or store whose address was checked, or a getelementptr inside a small array
WITHIN = " ;within"  # ends a getelementptr inside an array: as safe as the array's address
SHADOW = " ;shadow"  # ends the addition that leads from an address to that of its state
INSIDE = "  ;inside "  # a separate line: this pointer was compared with the bounds of the memory
SMALL = 1 << 20  # bytes of a small array

"""A kernel that is queued in any case and decides on the card whether it has anything to do."""

from __future__ import annotations


def guarded(source: str, value: int) -> str:
    """The kernel's text with one more argument, `verdict`: it leaves at once unless the word there is `value`."""
    above, mark, kernel = source.rpartition('extern "C" __global__')
    signature, opening, body = kernel.partition(")\n{\n")
    assert mark, "the text has no kernel"
    assert opening, "the kernel's body opens in some other way"
    leave = f"    if (*verdict != {value}u) return;\n"
    return above + mark + signature + ", const unsigned* verdict" + opening + leave + body

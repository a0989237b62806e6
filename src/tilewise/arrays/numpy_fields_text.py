"""What machine code reads of NumPy's array objects, as LLVM IR: who owns the memory, and how the array lies."""

from __future__ import annotations

OWNDATA = 4  # NumPy's NPY_ARRAY_OWNDATA
WRITEABLE = 0x400  # NPY_ARRAY_WRITEABLE
FIELDS = {"nd": 8, "dimensions": 16, "strides": 24, "base": 32, "descr": 40, "flags": 48}  # behind `data`
WORDS_OF_AN_ARRAY = 5  # among keywords: axes, two extents, two strides


def vouched_text(header: int) -> str:
    """Whether NumPy vouches for an array, as `extent.owned` asks."""
    return f"""
define private i64 @vouched(ptr %array) {{
{field("base", "%array", header)}
  %none = icmp eq ptr %base, null
  br i1 %none, label %yes, label %view
view:
  %class.array = getelementptr i8, ptr %array, i64 {header - 8}
  %array.type = load ptr, ptr %class.array
  %class.base = getelementptr i8, ptr %base, i64 {header - 8}
  %base.type = load ptr, ptr %class.base
  %alike = icmp eq ptr %array.type, %base.type
  br i1 %alike, label %owner, label %no
owner:
{field("base", "%base", header, "of")}
  %last = icmp eq ptr %of.base, null
  %flags.at = getelementptr i8, ptr %base, i64 {header + FIELDS["flags"]}
  %flags = load i32, ptr %flags.at
  %owns = and i32 %flags, {OWNDATA}
  %owned = icmp ne i32 %owns, 0
  %both = and i1 %last, %owned
  br i1 %both, label %yes, label %no
yes:
  ret i64 1
no:
  ret i64 0
}}
"""


def matrix_text(header: int) -> str:
    """Whether it has two axes, too."""
    return f"""
define private i64 @matrix(ptr %array) {{
  %at = getelementptr i8, ptr %array, i64 {header + FIELDS["nd"]}
  %axes = load i32, ptr %at
  %two = icmp eq i32 %axes, 2
  br i1 %two, label %ask, label %no
ask:
  %answer = call i64 @vouched(ptr %array)
  ret i64 %answer
no:
  ret i64 0
}}
"""


def owner_text(header: int) -> str:
    """The flags of an array that owns its memory, else 0."""
    return f"""
define private i32 @owner(ptr %array) {{
{field("base", "%array", header)}
  %none = icmp eq ptr %base, null
  %at = getelementptr i8, ptr %array, i64 {header + FIELDS["flags"]}
  %flags = load i32, ptr %at
  %owns = and i32 %flags, {OWNDATA}
  %owned = icmp ne i32 %owns, 0
  %both = and i1 %none, %owned
  %answer = select i1 %both, i32 %flags, i32 0
  ret i32 %answer
}}
"""


def array_text(header: int) -> str:
    """An array among the keywords: its words are written at %at; how many, 0 where it has too many axes."""
    return f"""
define private i64 @array(ptr %array, ptr %at) {{
{field("dimensions", "%array", header)}
{field("strides", "%array", header)}
  %nd.at = getelementptr i8, ptr %array, i64 {header + FIELDS["nd"]}
  %nd = load i32, ptr %nd.at
  %axes = zext i32 %nd to i64
  store i64 %axes, ptr %at
  %to1 = getelementptr i64, ptr %at, i64 1
  %to2 = getelementptr i64, ptr %at, i64 2
  %to3 = getelementptr i64, ptr %at, i64 3
  %to4 = getelementptr i64, ptr %at, i64 4
  store <4 x i64> zeroinitializer, ptr %to1, align 8
  switch i64 %axes, label %no [ i64 1, label %first i64 2, label %second ]
second:
  %extent2.at = getelementptr i64, ptr %dimensions, i64 1
  %extent2 = load i64, ptr %extent2.at
  store i64 %extent2, ptr %to2
  %stride2.at = getelementptr i64, ptr %strides, i64 1
  %stride2 = load i64, ptr %stride2.at
  store i64 %stride2, ptr %to4
  br label %first
first:
  %extent = load i64, ptr %dimensions
  store i64 %extent, ptr %to1
  %stride = load i64, ptr %strides
  store i64 %stride, ptr %to3
  ret i64 {WORDS_OF_AN_ARRAY}
no:
  ret i64 0
}}
"""


def field(name: str, array: str, header: int, prefix: str = "") -> str:
    """IR that loads a pointer of an array object into %name, or %prefix.name."""
    to = f"{prefix}.{name}" if prefix else name
    at = header + FIELDS[name]
    return f"  %{to}.at = getelementptr i8, ptr {array}, i64 {at}\n  %{to} = load ptr, ptr %{to}.at"


def written(array: str, dtype: int, first: int, header: int) -> str:
    """IR that writes an array's dtype, two extents and two strides into words of the key."""
    lines = [field(name, f"%{array}", header, array) for name in ("descr", "dimensions", "strides")]
    lines.append(
        f"  %{array}.d = getelementptr i64, ptr %words, i64 {dtype}\n  store ptr %{array}.descr, ptr %{array}.d"
    )
    for i, name in enumerate(("dimensions", "strides")):
        to = f"%{array}.{name}"
        lines.append(f"  {to}.v = load <2 x i64>, ptr {to}, align 8")
        lines.append(f"  {to}.to = getelementptr i64, ptr %words, i64 {first + 2 * i}")
        lines.append(f"  store <2 x i64> {to}.v, ptr {to}.to, align 8")
    return "\n".join(lines)

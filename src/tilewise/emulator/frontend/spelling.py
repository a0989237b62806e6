"""Other spellings of what the parser knows: `<< <…>> >` of a launch, and cooperative groups' barrier of the block."""

from __future__ import annotations

from tilewise.emulator.frontend.lexer import Token

GROUPS = ("cg", "cooperative_groups")
WHOLE_BLOCK = "this_thread_block"


def with_known_spellings(tokens: list[Token]) -> list[Token]:
    return _block_barriers(_launch_brackets(tokens))


def _launch_brackets(tokens: list[Token]) -> list[Token]:
    """`k << <g, b> >> (…)` is a launch for every compiler that formats code like that: `<< <` is no other C."""
    out: list[Token] = []
    opened: list[int] = []  # depth of brackets at each << < still open
    depth, i = 0, 0
    while i < len(tokens):
        text = tokens[i].text if tokens[i].kind == "punct" else ""
        after = tokens[i + 1].text if i + 1 < len(tokens) else ""
        third = tokens[i + 2].text if i + 2 < len(tokens) else ""
        if (text, after) in (("<<", "<"), ("<", "<<")):
            out.append(tokens[i]._replace(text="<<<"))
            opened.append(depth)
            i += 2
            continue
        if opened and depth == opened[-1] and text in (">", ">>"):
            opened.pop()
            out += [tokens[i]._replace(text=">>"), tokens[i]._replace(text=">", column=tokens[i].column + 2)]
            i += 3 if (text, after, third) == (">", ">", ">") else 2 if {text, after} == {">", ">>"} else 1
            continue
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(text, 0)
        out.append(tokens[i])
        i += 1
    return out


def _block_barriers(tokens: list[Token]) -> list[Token]:
    """`auto block = cg::this_thread_block(); block.sync();` is `__syncthreads();`."""
    if not any(t.text == WHOLE_BLOCK for t in tokens):
        return tokens
    words = [t.text for t in tokens]
    blocks: set[str] = set()
    out: list[Token] = []
    i = 0
    while i < len(tokens):
        declared = _declared_block(words, i)
        if declared is not None:
            blocks.add(declared[0])
            i = declared[1]
            continue
        length = _block_sync(words, i, blocks)
        if length:
            out += [tokens[i]._replace(kind="name", text="__syncthreads")]
            out += [tokens[i]._replace(kind="punct", text=text) for text in "()"]
            i += length
            continue
        out.append(tokens[i])
        i += 1
    return out


def _this_block(words: list[str], i: int) -> int:
    """How many tokens `cg::this_thread_block()` takes at i; 0 where it does not stand there."""
    start = i
    if words[i] in GROUPS and words[i + 1 : i + 2] == ["::"]:
        i += 2
    return i + 3 - start if words[i : i + 3] == [WHOLE_BLOCK, "(", ")"] else 0


def _declared_block(words: list[str], i: int) -> tuple[str, int] | None:
    """`auto b = this_thread_block();` and `cg::thread_block b = …`: the name, and where it ends."""
    if words[i] in GROUPS and words[i + 1 : i + 2] == ["::"]:
        i += 2
    if words[i : i + 1] not in (["auto"], ["thread_block"]) or i + 3 >= len(words) or words[i + 2] != "=":
        return None
    length = _this_block(words, i + 3)
    end = i + 3 + length
    return (words[i + 1], end + 1) if length and words[end : end + 1] == [";"] else None


def _block_sync(words: list[str], i: int, blocks: set[str]) -> int:
    call = [".", "sync", "(", ")"]
    if words[i] in blocks and words[i + 1 : i + 5] == call:
        return 5
    length = _this_block(words, i)
    if length and words[i + length : i + length + 4] == call:
        return length + 4
    at = i + 2 if words[i] in GROUPS and words[i + 1 : i + 2] == ["::"] else i
    if words[at : at + 2] == ["sync", "("] and at + 3 < len(words) and words[at + 2] in blocks and words[at + 3] == ")":
        return at + 4 - i
    return 0

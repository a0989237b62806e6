"""Headers are parsed once in a process: declarations and instances of one program do not leak into the next."""

import shutil
from pathlib import Path

from tilewise.emulator.host import header_cache
from tilewise.emulator.host.header_cache import load_headers
from tilewise.emulator.parse.declared import Declared
from tilewise.emulator.parse.parser import read_tokens
from tilewise.emulator.sema.bodies import body_of
from tilewise.emulator.sema.semantics import Semantics
from tilewise.emulator.sema.symbol_table import Environment
from tilewise.emulator.source.lexer import tokenize
from tilewise.emulator.source.source import Source

PROGRAM = """
struct Half { float x; };
float sqrt(Half h) { return h.x; }
namespace std { template <> struct hash<Half> { int operator()(Half h) const { return 1; } }; }
using std::vector;
int only_here = 3;
"""


def _read(text: str) -> Declared:
    headers = load_headers(["vector", "functional"])
    source = Source("a.cu", text)
    tokens = [t for t in tokenize(source) if t.kind != "newline"]
    return read_tokens(source, tokens, headers.declared, library=False)


def _counts(declared: Declared) -> tuple[int, ...]:
    entities, names = declared.entities, declared.names
    return (
        sum(len(found) for found in entities.functions.values()),
        sum(len(found) for found in entities.classes.values()),
        len(entities.variables),
        len(entities.order),
        len(names.types),
        len(names.aliases),
    )


def test_declarations_do_not_leak_into_the_next_program():
    before = _counts(_read(""))
    with_program = _counts(_read(PROGRAM))
    assert all(more > less for more, less in zip(with_program, before, strict=True))
    assert _counts(_read("")) == before


def test_a_body_belongs_to_the_program_that_read_it():
    first, second = _read(""), _read("")
    function = next(f for fs in first.entities.functions.values() for f in fs if f.tokens)
    assert function in second.entities.functions[function.name]
    source = Source("a.cu", "")
    bodies = [
        body_of(Semantics(source, d.entities, d.names), function, Environment(scope=function.scope))
        for d in (first, second)
    ]
    assert bodies[0] is not bodies[1]
    assert function.body is None


def test_the_cache_key_covers_the_lexer_and_the_parser(tmp_path, monkeypatch):
    shutil.copytree(Path(header_cache.__file__).parents[1], tmp_path / "emulator")
    monkeypatch.setattr(header_cache, "shipped", lambda name: tmp_path / name)
    keys = {header_cache._code()}
    for file in ("source/lexer.py", "parse/types.py"):
        with (tmp_path / "emulator" / file).open("a") as out:
            out.write("# changed")
        keys.add(header_cache._code())
    assert len(keys) == 3

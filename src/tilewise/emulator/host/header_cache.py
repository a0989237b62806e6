"""Disk cache of the parsed shipped headers: their macros and declarations."""

from __future__ import annotations

import hashlib
import pickle
from dataclasses import dataclass
from functools import lru_cache

from tilewise.emulator.host.known_headers import KNOWN, NEEDS
from tilewise.emulator.host.sources import Sources, placed_tokens
from tilewise.emulator.parse.declared import Declared
from tilewise.emulator.parse.packed_body import pack
from tilewise.emulator.parse.parser import read_tokens
from tilewise.emulator.source.lexer import Token
from tilewise.emulator.source.preprocess import Macro, Preprocessor
from tilewise.emulator.source.source import Source
from tilewise.system.cache import DiskCache
from tilewise.system.resources import shipped
from tilewise.system.version import __version__


@dataclass
class Headers:
    macros: dict[str, Macro]
    declared: Declared
    files: list[tuple[str, str]]  # name and text, in the order of `Sources`


def wanted_headers(names: list[str]) -> list[str]:
    """The files of `headers/` for these names, after those that they need."""
    wanted: list[str] = []
    for name in names:
        _add(name, wanted)
    return wanted


def load_headers(names: list[str]) -> Headers:
    """The declarations of these headers; the caller gets its own tables of a shared tree."""
    found = _loaded(tuple(wanted_headers(names)))
    return Headers(found.macros, found.declared.copy(), found.files)


@lru_cache(maxsize=8)
def _loaded(wanted: tuple[str, ...]) -> Headers:
    folder = shipped("emulator/host/headers")
    texts = [(f"<{file}>", folder.joinpath(file).read_text(encoding="utf-8")) for file in wanted]
    digest = hashlib.sha256("".join(text for _, text in texts).encode()).hexdigest()
    key = ("headers", __version__, digest, _code())
    made: Headers = pickle.loads(DiskCache("headers").get_or_build(key, lambda: pickle.dumps(_read(texts))))
    return made


def _code() -> str:
    """A digest of the lexer, preprocessor and parser, on which the cached tree depends."""
    folders = (shipped(f"emulator/{name}").iterdir() for name in ("source", "parse"))
    parts = sorted((f.name, f.read_bytes()) for files in folders for f in files if f.name.endswith(".py"))
    return hashlib.sha256(b"".join(data for _, data in parts)).hexdigest()


def _add(name: str, wanted: list[str]) -> None:
    file = KNOWN.get(name, name)
    for needed in NEEDS.get(file, ()):
        _add(needed, wanted)
    if file and file not in wanted:
        wanted.append(file)


def _read(texts: list[tuple[str, str]]) -> Headers:
    sources = Sources(Source("<headers>", ""))
    reader = Preprocessor(sources)
    reader.macros.pop("__CUDA_ARCH__", None)
    tokens: list[Token] = []
    for name, text in texts:
        tokens += reader.process(placed_tokens(sources, Source(name, text)))
    tokens.append(Token("end", "", 0, 1))
    declared = read_tokens(sources, tokens, Declared(), library=True)
    own = {n: m for n, m in reader.macros.items() if m.line}
    entities = declared.entities
    for function in [f for fs in entities.functions.values() for f in fs]:
        function.tokens = pack(function.tokens) if isinstance(function.tokens, list) else function.tokens
    for method in [m for cs in entities.classes.values() for c in cs for m in c.methods]:
        method.tokens = pack(method.tokens) if isinstance(method.tokens, list) else method.tokens
    return Headers(own, declared, texts)

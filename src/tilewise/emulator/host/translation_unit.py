"""A program's files as one token stream: local headers are read, known headers replaced by those of `headers/`.

Further source files follow the main file, each preprocessed with fresh macros; a header's declarations occur once."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from tilewise.emulator.host.header_cache import load_headers, wanted_headers
from tilewise.emulator.host.known_headers import ALWAYS, COPIED, FOLDERS, IMPLIED, KNOWN, PTX, REPLACED
from tilewise.emulator.host.project import HEADERS, folders_above, in_project, only_file, usual_folders
from tilewise.emulator.host.sources import Sources, placed_tokens
from tilewise.emulator.limits import DEFAULT, Limits
from tilewise.emulator.parse.declared import Declared
from tilewise.emulator.source.lexer import Token, tokenize
from tilewise.emulator.source.preprocess import Macro, Preprocessor
from tilewise.emulator.source.source import Source, read_source
from tilewise.errors import FileError

MAX_DEPTH = 40
ARCH = "__CUDA_ARCH__"
USING = re.compile(r"\busing\s+namespace\s+std\b")
QUALIFIED = re.compile(r"\bstd\s*::\s*(\w+)")
ASSEMBLY = re.compile(r"\b(asm|__asm__)\b")
BARE = re.compile(r"\b(cout|cerr|cin|endl|vector|string|mt19937|unique_ptr)\b")


@dataclass
class Unit:
    source: Sources
    tokens: list[Token]  # of the program itself
    declared: Declared  # by the known headers
    local: list[str]  # files that were included
    unknown: list[str]  # <...> that are neither known nor found; skipped
    implied: list[str]  # standard headers that are used and not included
    macros: dict[str, Macro]  # the program's own


@dataclass
class Copies:
    """A project's copies of known headers."""

    found: list[str] = field(default_factory=list)
    other: bool = False  # second attempt: read copies of NVIDIA's headers, and not the project's own


class UnitReader(Preprocessor):
    """The preprocessor with #include: of files next to the program or under --include, and of known headers."""

    def __init__(
        self,
        source: Source,
        folders: list[Path],
        above: list[Path],
        defines: dict[str, str],
        copies: Copies,
        lenient: bool = False,
        limits: Limits = DEFAULT,
    ) -> None:
        self.sources = Sources(source)
        super().__init__(self.sources, defines, limits)
        self.architecture = self.macros[ARCH]
        if not lenient:
            del self.macros[ARCH]
        self.folders = [folder.resolve() for folder in folders]
        self.above = above  # folders of the project above the program's
        self.usual = usual_folders(self.folders[0], above) if folders else []
        self.earlier: set[str] = set()  # headers that an earlier source file included
        self.once: set[str] = set()
        self.local: list[str] = []
        self.copies = copies
        self.depth = 0
        self.including: list[Path] = []  # folders of the files being included
        self.lenient = lenient  # only kernels are compiled: missing headers are skipped
        self._texts = [source.text]
        self.unknown: list[str] = []
        self.implied: list[str] = []

    def unit(self, others: list[Path]) -> Unit:
        """Load the known headers, then preprocess the program's files."""
        main = tokenize(self.source)
        texts = [read_source(path) for path in others]
        named = self._named(main, set())
        for path, text in zip(others, texts, strict=True):
            self._texts.append(text.text)
            self.including.append(path.parent)
            named += self._named(tokenize(text), set())
            self.including.pop()
        ptx = [PTX] if any(map(ASSEMBLY.search, self._texts)) else []
        library = load_headers(self._with_implied([*ALWAYS, *ptx, *named]))
        self.sources.others = [Source(name, text) for name, text in library.files]
        predefined = set(self.macros) - set(self.forced)
        self.macros = {**library.macros, **self.macros}
        macros = dict(self.macros)
        body = self.process(main)
        for path, text in zip(others, texts, strict=True):
            self.earlier |= set(self.local)
            self.once.clear()
            self.macros = dict(macros)
            body += self._placed(text, path.parent)
        number = self.architecture.body[0]  # uses outside #if are in device code
        body = [number.at(t) if t.text == ARCH and t.kind == "name" else t for t in body]
        own = {n: m for n, m in self.macros.items() if n not in predefined and library.macros.get(n) is not m}
        return Unit(
            self.sources, [*body, main[-1]], library.declared, self.local, self.unknown, self.implied, own
        )  # fmt: skip

    def _with_implied(self, names: list[str]) -> list[str]:
        """These headers, and standard headers whose names the program uses without including them."""
        names_used: set[str] = set()
        for text in self._texts:
            names_used.update(QUALIFIED.findall(text))
            if USING.search(text):
                names_used.update(BARE.findall(text))
        included = set(wanted_headers(names))
        for header, (file, known) in IMPLIED.items():
            if file not in included and names_used.intersection(known):
                self.implied.append(header)
                included |= set(wanted_headers([file]))
        return [*names, *self.implied]

    def _named(self, tokens: list[Token], seen: set[str]) -> list[str]:
        """Known headers that the tokens include, also through local files."""
        out: list[str] = []
        for i, token in enumerate(tokens):
            if token.text != "include" or i == 0 or tokens[i - 1].text != "#":
                continue
            j = i + 1
            while tokens[j].kind != "newline":
                j += 1
            text = "".join(t.text for t in tokens[i + 1 : j])
            name = text.strip('<>"')
            of_system = KNOWN.get(header_name(name), COPIED[0]) not in COPIED
            path = self._find(name) if text.startswith('"') or not of_system else None
            if path is not None and str(path) not in seen and len(seen) < 200:
                seen.add(str(path))
                found = read_source(path)
                self._texts.append(found.text)
                self.including.append(path.parent)
                out += self._named(tokenize(found), seen)
                self.including.pop()
            elif header_name(name) in KNOWN:
                name = header_name(name)
                out.append(name)
        return out

    def include(self, name: str, hash_: Token) -> list[Token]:
        bare = name.strip('<>"')
        path = self._find(bare)
        if path is None:
            if header_name(bare) in KNOWN or self.lenient:
                return []
            if name.startswith("<"):  # its names may not be used
                self.unknown.append(name)
                return []
            outside = self._outside(bare)
            lacking = (
                f"{bare} is neither beside the program nor under --include, and not known by name"
                if outside is None
                else f"{bare} lies outside the program's folder: --include {outside} lets it be read"
            )
            raise FileError(str(self.source.error(lacking, hash_.line, hash_.column)))
        if str(path) in self.once:
            return []
        if self.depth >= MAX_DEPTH:
            raise self.source.error(f"includes nested more than {MAX_DEPTH} deep", hash_.line, hash_.column)
        text = read_source(path)
        if "#pragma once" in text.text:
            self.once.add(str(path))
        tokens = self._placed(text, path.parent)
        if str(path) in self.earlier:
            return []
        self.local.append(str(path))
        return tokens

    def _condition(self, name: str, rest: list[Token], hash_: Token) -> bool:
        """__CUDA_ARCH__ is defined only inside device functions."""
        on_device = not self.lenient and any(t.text == ARCH for t in rest) and self._on_device()
        if on_device:
            self.macros[ARCH] = self.architecture
        try:
            return super()._condition(name, rest, hash_)
        finally:
            if on_device:
                del self.macros[ARCH]

    def _on_device(self) -> bool:
        """Whether the tokens so far end inside the body of a device-only function."""
        depth = 0
        head: set[str] | None = None  # the tokens before an open brace
        for token in [*reversed(self.expanded), Token("punct", ";", 0, 0)]:
            if token.text in ("{", "}", ";"):
                if head and head & {"__global__", "__device__"}:
                    return "__host__" not in head
                head = None
                depth += {"{": 1, "}": -1, ";": 0}[token.text]
                if depth > 0:
                    depth, head = 0, set()
            elif head is not None:
                head.add(token.text)
        return False

    def _placed(self, source: Source, folder: Path) -> list[Token]:
        tokens = placed_tokens(self.sources, source)
        self.depth += 1
        self.including.append(folder)
        try:
            return self.process(tokens)
        finally:
            self.depth -= 1
            self.including.pop()

    def _outside(self, name: str) -> str | None:
        """The relative folder of an existing file that may be read only with --include."""
        for folder in (*self.including[-1:], *self.folders[:1]):
            try:
                path = (folder / name).resolve()
                if path.is_file():
                    return os.path.relpath(path.parent)
            except (OSError, ValueError):
                continue
        return None

    def _find(self, name: str) -> Path | None:
        """A file of that name: next to the including file, in the allowed folders, or in the project."""
        known = header_name(name)
        if known in REPLACED:
            return None
        near = (*self.including[-1:], *self.folders)
        named = [folder / Path(name).stem for folder in self.above]  # framework/framework.cuh
        far = [*self.usual, *named] if known not in KNOWN or KNOWN[known] in COPIED else []
        for folder in (*near, *far):
            try:
                path = (folder / name.replace("\\", "/")).resolve()
                if path.is_file() and (
                    any(path.is_relative_to(a) for a in self.folders) or in_project(path, self.above)
                ):
                    return path if known not in KNOWN or self._is_read(path, known) else None
            except (OSError, ValueError):
                continue
        if known in KNOWN or not self.folders or not name.endswith(HEADERS):
            return None
        only = only_file(name.replace("\\", "/"), self.folders[0], self.above)
        return only if only is not None and in_project(only, [self.folders[0], *self.above]) else None

    def _is_read(self, path: Path, known: str) -> bool:
        """Whether the project's copy of a known header is read instead of the shipped one.

        A project's own header is; a copy of NVIDIA's, which needs the toolkit's other headers, is not. If the program
        cannot be compiled so, the opposite is tried (`Copies.other`)."""
        self.copies.found.append(known)
        return _is_nvidias(path) == self.copies.other


def _is_nvidias(path: Path) -> bool:
    """Whether it is a copy of a header of the CUDA samples."""
    return "nvidia corporation" in read_source(path).text[:3000].lower()


def header_name(name: str) -> str:
    """The name under which a header is known: `book.h` for `../../common/book.h`."""
    name = name.replace("\\", "/")
    if name in KNOWN:
        return name
    folder = next((known for start, known in FOLDERS.items() if name.startswith(start)), None)
    return folder or name.rpartition("/")[2]


def read_unit(
    path: str | Path, folders: list[str], defines: dict[str, str], others: list[Path] | None = None,
    copies: Copies | None = None, arch: str = "sm_90",
) -> Unit:  # fmt: skip
    """The program, preprocessed for this architecture."""
    source = read_source(path)
    places = [Path(f) for f in folders]
    above: list[Path] = []
    if source.name != "<text>":
        own = Path(path).resolve().parent
        places = [own, *places]
        above = folders_above(own)
    for folder in places:
        if not folder.is_dir():
            raise FileError(f"{folder}: not a folder")
    defines = {ARCH: f"{arch.removeprefix('sm_')}0", **defines}
    return UnitReader(source, places, above, defines, copies or Copies()).unit(others or [])


def kernel_unit(source: Source, defines: dict[str, str], limits: Limits) -> Unit:
    """A file of which only kernels are compiled, with the headers of its project."""
    own = [] if source.name == "<text>" else [Path(source.name).resolve().parent]
    above = folders_above(own[0]) if own else []
    return UnitReader(source, own, above, defines, Copies(), True, limits).unit([])

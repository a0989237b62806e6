"""Collects submissions (all files of a student) from files, folders, archives, patterns and standard input.

Folders and archives are read into {path: bytes}, then divided by the same rules. Nothing is extracted to disk, links
are not followed, and too large files are left out and reported.
"""

from __future__ import annotations

import glob
import io
import re
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from tilewise.errors import UsageError

SOURCES = (".cu", ".cpp", ".cc", ".cxx", ".c")
HEADERS = (".h", ".hpp", ".hh", ".cuh", ".inl", ".inc")
ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
MOST_BYTES = 1_000_000  # of a source file
MOST_OF_ONE = 16 << 20  # bytes of a submission, of which an archive may decompress no more
MOST_OF_ALL = 1 << 30  # and of an archive of a whole class
MOST_FILES = 20_000
MAIN = re.compile(r"\bmain\s*\([^;{}]*\)\s*\{")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
# names in downloads of learning platforms: Moodle's folder of a student, Canvas's prefix of a file
MOODLE = re.compile(r"(?P<who>[^/]+?)_(?P<id>\d+)_assignsubmission_(?:file|onlinetext)_?(?=/|$)")
CANVAS = re.compile(r"(?P<who>[a-z0-9]+)(?:_LATE)?_(?P<id>\d+)_\d+_(?P<file>[^/]+)$")

Tree = dict[str, bytes]


@dataclass(frozen=True)
class Submission:
    name: str
    file: str  # the path that reports show
    files: Tree = field(default_factory=dict, repr=False)  # by their paths within the submission
    trouble: str = ""  # why it cannot be graded
    id: str = ""  # of the student in the platform that it was downloaded from
    root: str = ""  # the folder or archive of its files, for reports

    @property
    def texts(self) -> dict[str, str]:
        return {p: decoded(data) for p, data in self.files.items() if p.endswith(SOURCES + HEADERS)}


def decoded(data: bytes) -> str:
    return data.decode("utf-8-sig", "replace")


def collect(given: Iterable[str]) -> list[Submission]:
    """The submissions, each file once, in the order given."""
    out: dict[str, Submission] = {}
    for argument in given:
        if argument == "-":
            out["-"] = Submission("stdin", "-", {"program.cu": sys.stdin.read().encode()})
            continue
        exists = Path(argument).exists()
        paths = [Path(argument)] if exists else [Path(p) for p in sorted(glob.glob(argument, recursive=True))]
        if not paths:
            raise UsageError(f"{argument}: there is no such file or folder, and nothing fits it as a pattern")
        for path in paths:
            for one in _of_path(path, [p for p in paths if p.is_file()]):
                out.setdefault(one.file, one)
    return list(out.values())


def _of_path(path: Path, others: list[Path]) -> list[Submission]:
    if path.is_dir():
        tree = _folder(path)
        found = list(_cut(tree, "", str(path), True))
        if not found:
            raise UsageError(f"{path}: there is no .cu file in this folder")
        return found
    if path.name.endswith(ARCHIVES):
        return _of_archive(_read(path), stem(path.name), str(path), True)
    return [_of_file(path, others)]


def stem(name: str) -> str:
    for ending in ARCHIVES:
        name = name.removesuffix(ending)
    return PurePosixPath(name).stem if name.endswith(SOURCES + HEADERS) else name


def _of_file(path: Path, others: list[Path]) -> Submission:
    """The submission of a file with the local files that it includes, unless they are submissions themselves."""
    try:
        files: Tree = {}
        left = [path]
        while left:
            file = left.pop()
            inside = file.relative_to(path.parent).as_posix()
            if inside in files:
                continue
            files[inside] = data = _read(file, MOST_BYTES)
            for name in INCLUDE.findall(decoded(data)):
                near = file.parent / name
                if _is_inside(near, path.parent) and near not in others:
                    left.append(near)
    except OSError as error:
        return Submission(path.stem, str(path), trouble=f"it cannot be read: {error.strerror or error}")
    except UsageError as error:
        return Submission(path.stem, str(path), trouble=str(error))
    return Submission(path.stem, str(path), files, root=str(path.parent))


def _is_inside(path: Path, folder: Path) -> bool:
    try:
        return path.is_file() and ".." not in path.parts and path.resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError):
        return False


def _read(path: Path, most: int = MOST_OF_ALL) -> bytes:
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise UsageError(f"it is larger than {most:,} bytes")
    return data


def _folder(folder: Path) -> Tree:
    """The regular files below a folder without hidden files, links, and large files that are not sources."""
    tree: Tree = {}
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if path.is_symlink() or not path.is_file() or any(part.startswith((".", "__MACOSX")) for part in inside.parts):
            continue
        if len(tree) >= MOST_FILES:
            raise UsageError(f"{folder}: there are more than {MOST_FILES:,} files in it")
        most = MOST_OF_ONE if path.name.endswith(ARCHIVES) else MOST_BYTES
        if path.stat().st_size <= most:
            tree[inside.as_posix()] = path.read_bytes()
        elif path.name.endswith(SOURCES + HEADERS + ARCHIVES):
            tree[inside.as_posix()] = bytes(most + 1)  # reported as too large by its length
    return tree


def _of_archive(data: bytes, name: str, file: str, top: bool) -> list[Submission]:
    try:
        tree = unpacked(data, MOST_OF_ALL if top else MOST_OF_ONE)
    except UsageError as error:
        return [Submission(name, file, trouble=str(error))]
    return list(_cut(tree, name, file, top)) or [Submission(name, file, trouble="there is no .cu file in it")]


def unpacked(data: bytes, most: int = MOST_OF_ONE) -> Tree:
    """The regular files of a zip or tar, at most `most` bytes together; a path outside the archive is refused."""
    tree: Tree = {}
    left = most
    try:
        for name, size, read in _members(data):
            path = PurePosixPath(name.replace("\\", "/"))
            if path.is_absolute() or ".." in path.parts or re.match(r"[A-Za-z]:", name):
                raise UsageError(f"the archive has a path outside itself: {name!r}")
            if any(part.startswith((".", "__MACOSX")) for part in path.parts):
                continue
            if len(tree) >= MOST_FILES or size > left:
                raise UsageError(f"the archive has more than {most:,} bytes or {MOST_FILES:,} files")
            content = read(min(left, size) + 1)
            left -= len(content)
            if left < 0 or len(content) > size:
                raise UsageError(f"the archive has more than {most:,} bytes, or a file is longer than it says")
            tree[str(path)] = content
    except (
        zipfile.BadZipFile,
        tarfile.TarError,
        EOFError,
        OSError,
        ValueError,
        NotImplementedError,
        RuntimeError,
    ) as error:
        raise UsageError(f"the archive cannot be read: {error}") from None
    return tree


def _members(data: bytes) -> Iterator[tuple[str, int, Callable[[int], bytes]]]:
    """Name, length and reader of each regular file; links and devices are left out."""
    if zipfile.is_zipfile(io.BytesIO(data)):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for info in archive.infolist():
                kind = info.external_attr >> 28
                if not info.is_dir() and kind in (0, 8):  # none given, or S_IFREG
                    with archive.open(info) as file:
                        yield info.filename, info.file_size, file.read
        return
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:*") as tar:
        for member in tar:
            if member.isreg() and not member.issparse():
                content = tar.extractfile(member)
                assert content is not None
                yield member.name, member.size, content.read


def _cut(tree: Tree, name: str, file: str, top: bool) -> Iterator[Submission]:
    """Divide a tree into submissions. A student's folder or archive with at most one main is one submission; so is the
    given folder, if its only main is in a file named main. Several mains, or files side by side, are several."""
    tree = _unwrapped(_by_student(tree) if top else tree)
    sources = [p for p in tree if p.endswith(SOURCES)]
    archives = [p for p in tree if p.endswith(ARCHIVES)]
    mains = [p for p in sources if has_main(decoded(tree[p]))]
    folders = {p.split("/")[0] for p in (*sources, *archives) if "/" in p}
    single = not archives and len(mains) <= 1
    if top and not name:  # a folder
        single = single and len(mains) == 1 and PurePosixPath(mains[0]).stem == "main" and "/" not in mains[0]
    elif top:  # an archive
        single = single and (len(folders) <= 1 or (bool(mains) and "/" not in mains[0]))
    if single and sources:
        yield _made(name or PurePosixPath(file).name, file, tree)
        return
    name = "" if top else name
    for path in sorted(p for p in (*sources, *archives) if "/" not in p):
        shown = f"{name}/{stem(path)}" if name else stem(path)
        if path in archives:
            yield from _of_archive(tree[path], shown, f"{file}/{path}", False)
        else:
            beside = {p: data for p, data in tree.items() if "/" not in p and not p.endswith(SOURCES + ARCHIVES)}
            yield _made(shown, file, {path: tree[path]} | beside, f"{file}/{path}")
    for folder in sorted(folders):
        inner = {p.removeprefix(f"{folder}/"): data for p, data in tree.items() if p.startswith(f"{folder}/")}
        yield from _cut(inner, f"{name}/{folder}" if name else folder, f"{file}/{folder}", False)


def _by_student(tree: Tree) -> Tree:
    """Move files that Canvas prefixes with their student to a folder for each student."""
    found = {p: CANVAS.match(p) for p in tree}
    return {
        f"{m['who']}_{m['id']}_assignsubmission_file_/{m['file']}" if (m := found[p]) else p: d for p, d in tree.items()
    }


def _unwrapped(tree: Tree) -> Tree:
    """Remove a single top-level folder."""
    while tree and len({p.split("/")[0] for p in tree}) == 1 and all("/" in p for p in tree):
        if MOODLE.match(next(iter(tree))):
            break
        tree = {p.partition("/")[2]: data for p, data in tree.items()}
    return tree


def _made(name: str, root: str, tree: Tree, file: str = "") -> Submission:
    found = MOODLE.match(name)
    sources = [p for p in tree if p.endswith(SOURCES + HEADERS)]
    file = file or (f"{root}/{sources[0]}" if len(sources) == 1 else root)
    long = [p for p in sources if len(tree[p]) > MOST_BYTES]
    if long or sum(map(len, tree.values())) > MOST_OF_ONE:
        return Submission(name, file, trouble=f"it is larger than {MOST_BYTES:,} bytes")
    if found:
        rest = name[found.end() :].strip("/")
        return Submission(f"{found['who']}/{rest}" if rest else found["who"], file, tree, id=found["id"], root=root)
    return Submission(name, file, tree, root=root)


def has_main(text: str) -> bool:
    return MAIN.search(COMMENT.sub(" ", text)) is not None

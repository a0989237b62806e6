"""Imports point only downwards in the list of docs/layout.md."""

from __future__ import annotations

import re

import pytest

from statements import ROOT, sources

LAYOUT = ROOT.parents[1] / "docs" / "layout.md"


def rooms():
    """From the roof to the ground, as the document lists them; a room may import from itself and from what is below."""
    listed = []
    for line in LAYOUT.read_text(encoding="utf-8").splitlines():
        if line.startswith("| `"):
            listed += re.findall(r"`([\w/.]+)`", line.split("|")[1])
    return tuple(dict.fromkeys(["__main__", *(name.split("/")[0].removesuffix(".py") for name in listed), "__init__"]))


ROOMS = rooms()
GENERATORS = ("ladder", "simt_gemm", "mma_gemm", "wgmma_gemm")
EMULATOR_ROOMS = (
    "multiply", "launching", "prove", "check", "host", "compile", "machine", "sema", "parse", "source", "budget",
    "limits",
)  # fmt: skip


def room_of(module):
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


@pytest.fixture(scope="module")
def all_imports(run_folder):
    """(who, what of ours, line) of every import; the package's lazy table of names is not one."""
    found = []
    for source in sources(run_folder):
        if source.path == ROOT / "__init__.py":
            continue
        for given in source.imports:
            inner = given.names if given.module in ("tilewise", "tilewise.backends") else ()
            for name in [f"{given.module}.{name}" for name in inner] or [given.module]:
                if name.partition(".")[0] == "tilewise":
                    found.append((source.module, name, given.line))
    return found


def test_every_file_is_in_a_listed_room():
    for path in ROOT.iterdir():
        if path.suffix == ".py" or (path.is_dir() and (path / "__init__.py").exists()):
            assert path.stem in ROOMS, f"{path.name} is in no room of docs/layout.md"


def test_imports_point_downwards(all_imports):
    for module, name, line in all_imports:
        above, below = room_of(module), room_of(name)
        if below not in ROOMS:
            below = "__init__"  # from tilewise import __version__
        assert ROOMS.index(above) <= ROOMS.index(below), f"{module}:{line} imports {name}, which is above it"


def test_backends_do_not_know_each_other(all_imports):
    for module, name, line in all_imports:
        if room_of(module) == room_of(name) == "backends":
            mine, theirs = (parts[2] if len(parts := m.split(".")) > 2 else "" for m in (module, name))
            if mine and theirs:
                assert mine == theirs, f"{module}:{line} imports {name}, another backend"


def test_kernel_generators_do_not_know_each_other(all_imports):
    """What one leaves to another is a step of `kernels/shared/delegated.py`."""

    def generator(module):
        parts = module.split(".")
        return parts[2] if parts[1:2] == ["kernels"] and parts[2:3] and parts[2] in GENERATORS else None

    for module, name, line in all_imports:
        mine, theirs = generator(module), generator(name)
        if mine and theirs:
            assert mine == theirs, f"{module}:{line} imports {name}, of another generator"


def test_rooms_of_the_emulator_point_downwards(all_imports):
    """prove > check > host > compile > machine > sema > parse > source; `multiply` and `launching` are above them."""

    def room(module):
        parts = module.split(".")
        return parts[2] if len(parts) > 2 and parts[:2] == ["tilewise", "emulator"] else None

    for path in (ROOT / "emulator").iterdir():
        if path.suffix == ".py" or (path.is_dir() and (path / "__init__.py").exists()):
            assert path.stem in (*EMULATOR_ROOMS, "__init__"), f"{path.name} is in no room of the emulator"
    for module, name, line in all_imports:
        above, below = room(module), room(name)
        if above and below:
            order = EMULATOR_ROOMS.index(above), EMULATOR_ROOMS.index(below)
            assert order[0] <= order[1], f"{module}:{line} imports {name}, which is above it"


def files_of(name, given):
    """The files of ours that one import statement opens: a package that hands on its modules opens those."""
    for alias in given or [""]:
        inner = ROOT.parent.joinpath(*name.split("."), alias) if alias else None
        if inner is not None and (inner.with_suffix(".py").exists() or (inner / "__init__.py").exists()):
            yield f"{name}.{alias}"
        else:
            yield name


def test_no_circle_of_imports_between_files(run_folder):
    """No circle, not even of imports for type checkers. The package's `__init__` is left out: it imports lazily."""
    edges = {}
    for source in sources(run_folder):
        for given in source.imports:
            if given.names and given.module.startswith("tilewise."):
                edges.setdefault(source.module, set()).update(files_of(given.module, given.names))
    edges.pop("tilewise")
    done, path = set(), []

    def visit(module):
        assert module not in path, " -> ".join([*path[path.index(module) :], module])
        if module not in done:
            path.append(module)
            for below in sorted(edges.get(module, ())):
                visit(below)
            path.pop()
            done.add(module)

    for module in sorted(edges):
        visit(module)


def test_no_room_reaches_upwards_by_the_public_name(all_imports):
    """`import tilewise` inside a room hides an import that points upwards: its lazy names are those of every room."""
    assert not {module for module, name, _ in all_imports if name == "tilewise"}

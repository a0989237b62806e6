"""An output in progress: a private, locked folder beside it; at the end a rename.

`C.npy` is written in `.C.npy.tilewise/`, which only this user can access, so that no other user can place a link there.
It holds the lock, the unfinished file, and the journal of a job that can be resumed. Only regular files are replaced; a
link is followed once: the output is written beside its target.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from tilewise.errors import FileError
from tilewise.system.files import here, kind_of, put
from tilewise.system.lock import Lock

Kinds = tuple[str, ...]


def check_output(path: Path, kinds: Kinds = ()) -> Path:
    """The resolved path of an output; FileError, before any work is done, if it cannot be written."""
    if kinds and path.suffix.lower() not in kinds:
        raise FileError(f"{path}: the output's name must end in {' or '.join(kinds)}, which says what it will be")
    try:
        target = path.resolve()
        if target.is_symlink():  # a loop, at which Python ≥ 3.13 stops resolving without an error
            raise RuntimeError
    except (OSError, RuntimeError):
        raise FileError(f"{path} is a link that leads nowhere") from None
    folder = target.parent
    if not folder.is_dir():
        where = path.parent if target.parent == path.parent.resolve() else folder
        raise FileError(f"the folder {where} does not exist: make it first, or choose another place for {path.name}")
    if target.exists():
        if target.is_dir():
            store = ".zarr" in kinds and path.suffix == ".zarr"
            if not store or not any((target / f).exists() for f in ("zarr.json", ".zarray")):
                what = "a folder, but no Zarr array" if store else "a folder: give the name of a file"
                raise FileError(f"{path} is {what}")
        elif not target.is_file():
            raise FileError(f"{path} is {kind_of(target)}, which is not replaced: give the name of a file")
        elif path.suffix == ".zarr" and ".zarr" in kinds:
            raise FileError(f"{path} is a file, and a Zarr array is a folder: give another name")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise FileError(f"the folder {path.parent} cannot be written: permission denied")
    return target


def write_whole(path: Path, data: bytes | str) -> None:
    """Write a small output atomically."""
    with Output(path) as place:
        place.write(data.encode() if isinstance(data, str) else data)


class Output:
    """The folder of one output. `open` locks it; then `finish`, `discard`, or `close` to resume later."""

    def __init__(self, path: Path, kinds: Kinds = ()) -> None:
        self.path, self.target = path, check_output(path, kinds)
        self.folder = self.target.with_name(f".{self.target.name}.tilewise")
        self.part, self.journal = self.folder / f"part{path.suffix}", self.folder / "journal"
        self._lock = Lock(self.folder / "lock", str(path))

    def open(self) -> Output:
        """Lock the folder, or raise BusyError naming the owner. Nothing in it is changed."""
        for _ in range(100):
            try:
                with contextlib.suppress(FileExistsError):
                    here().make_folder(self.folder)
                    here().sync_folder(self.folder.parent)
                self._check_folder()
                self._lock.take()
                return self
            except FileNotFoundError:  # its last owner has just removed the folder
                continue
            except FileError:
                raise
            except OSError as error:
                raise FileError(f"{self.folder} cannot be written: {error.strerror or error}") from None
        raise FileError(f"{self.folder} comes and goes: others are making {self.path} at this moment")

    def finish(self) -> None:
        """Rename the part, which its writer has synced, to the output; then remove everything else."""
        if not self.part.is_dir():
            here().replace(self.part, self.target)
        else:
            old = self.folder / "old"
            if self.target.is_dir():
                here().replace(self.target, old)
            here().replace(self.part, self.target)
        here().sync_folder(self.target.parent)
        self.discard()

    def discard(self) -> None:
        """Remove the unfinished output and release the folder."""
        with contextlib.suppress(OSError):
            self.discard_unfinished()
        self._lock.remove()
        with contextlib.suppress(OSError):
            here().remove_folder(self.folder)

    def discard_unfinished(self) -> None:
        """Remove the files of an earlier run; the folder stays locked."""
        here().remove(self.journal)
        self.remove_part()
        for stray in list(self.folder.iterdir()) if self.folder.is_dir() else []:
            if stray.name != "lock":
                shutil.rmtree(stray) if stray.is_dir() and not stray.is_symlink() else here().remove(stray)

    def remove_part(self) -> None:
        if self.part.is_dir() and not self.part.is_symlink():
            shutil.rmtree(self.part)
        elif self.part.is_symlink() or self.part.exists():
            here().remove(self.part)

    def close(self) -> None:
        """Release the folder; an unfinished output that can be resumed stays."""
        if self.journal.exists():
            self._lock.drop()
        else:
            self.discard()

    def __enter__(self) -> Output:
        return self.open()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def write(self, data: bytes) -> None:
        """Write the whole output."""
        self.write_by(lambda file: put(file, memoryview(data), 0))

    def write_by(self, writes: Callable[[int], object]) -> None:
        """Write the whole output by a function that receives the open part."""
        try:
            self.discard_unfinished()
            file = here().create(self.part)
            try:
                writes(file)
                here().sync(file)
            finally:
                here().close(file)
            self.finish()
        except OSError as error:
            if isinstance(error, FileError):
                raise
            raise FileError(f"{self.path} cannot be written: {error.strerror or error}") from None

    def _check_folder(self) -> None:
        about = os.stat(self.folder, follow_symlinks=False)
        if not stat.S_ISDIR(about.st_mode):
            raise FileError(f"{self.folder} is no folder, and {self.path} is made there: remove it")
        if hasattr(os, "geteuid") and about.st_uid != os.geteuid():
            raise FileError(
                f"{self.folder} belongs to another user, and {self.path} is made there: give another output, or have "
                "it removed"
            )
        if os.name == "posix" and about.st_mode & 0o077:
            with contextlib.suppress(OSError):  # a file system without modes
                os.chmod(self.folder, 0o700)

"""A record of everything that is done to files, played back up to any point: what a crash there would have left.

What was synced is there. Of what was not, each write may be there, be missing, or be half there, as a disk has it.
"""

from __future__ import annotations

import os
from pathlib import Path

from tilewise.system.files import PosixFiles


class Recorder(PosixFiles):
    def __init__(self, root):
        super().__init__()
        self.root, self.log, self.names = Path(root).resolve(), [], {}

    def _name(self, path):
        return str(Path(os.path.abspath(path)).relative_to(self.root))

    def create(self, path):
        file = super().create(path)
        self.names[file] = self._name(path)
        self.log.append(("create", self.names[file]))
        return file

    def reopen(self, path):
        file = super().reopen(path)
        self.names[file] = self._name(path)
        return file

    def write_at(self, file, memory, offset):
        self.log.append(("write", self.names[file], offset, bytes(memory)))
        return super().write_at(file, memory, offset)

    def truncate(self, file, count):
        self.log.append(("truncate", self.names[file], count))
        super().truncate(file, count)

    def reserve(self, file, count):
        self.log.append(("truncate", self.names[file], count))
        super().reserve(file, count)

    def sync(self, file):
        self.log.append(("sync", self.names[file]))
        super().sync(file)

    def sync_folder(self, folder):
        self.log.append(("sync_folder", self._name(folder)))
        super().sync_folder(folder)

    def replace(self, source, target):
        self.log.append(("replace", self._name(source), self._name(target)))
        super().replace(source, target)

    def remove(self, path):
        if os.path.lexists(path):
            self.log.append(("remove", self._name(path)))
        super().remove(path)

    def make_folder(self, path):
        super().make_folder(path)
        self.log.append(("mkdir", self._name(path)))

    def remove_folder(self, path):
        if os.path.isdir(path):
            try:
                super().remove_folder(path)
                self.log.append(("rmdir", self._name(path)))
            except OSError:
                raise


def play(log, root, chance):
    """What the disk may hold if the machine stops after these operations."""
    synced = {}
    for number, (what, *rest) in enumerate(log):
        if what == "sync":
            synced[rest[0]] = number
        elif what == "replace":
            synced[rest[1]] = synced.pop(rest[0], -1)
    last = {}
    moved = {}
    for _number, (what, *rest) in enumerate(log):
        if what == "replace":
            moved[rest[0]] = rest[1]
    for number, (what, *rest) in enumerate(log):
        name = rest[0] if rest else ""
        path = root / name
        final = moved.get(name, name)
        safe = number <= max(synced.get(name, -1), synced.get(final, -1))
        if what == "mkdir":
            path.mkdir(mode=0o700, exist_ok=True)
        elif what == "create":
            path.write_bytes(b"")
            last[name] = number
        elif what == "write" and path.exists():
            data = rest[2] if safe else chance.choice([rest[2], rest[2][: len(rest[2]) // 2], b"", rest[2]])
            with path.open("r+b") as file:
                file.seek(rest[1])
                file.write(data)
        elif what == "truncate" and path.exists():
            os.truncate(path, rest[1])
        elif what == "replace" and path.exists():
            os.replace(path, root / rest[1])
        elif what == "remove":
            path.unlink(missing_ok=True)
        elif what == "rmdir" and path.is_dir() and not any(path.iterdir()):
            path.rmdir()

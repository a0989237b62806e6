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
    """What the disk may hold if the machine stops after these operations.

    Data: what was written before a file's last sync is there; of the rest each write may be there, missing or half
    there. Names: what was done in a folder before its last sync is there; of the rest a beginning is, as journalling
    file systems have it. A file that was synced may so be without a name.
    """
    live, data, synced = {}, [], {}  # names to files; for each file its operations; the number of its last sync
    for number, (what, *rest) in enumerate(log):
        if what == "create":
            live[rest[0]] = len(data)
            data.append([])
        elif what in ("write", "truncate") and rest[0] in live:
            data[live[rest[0]]].append((number, what, *rest[1:]))
        elif what == "sync" and rest[0] in live:
            synced[live[rest[0]]] = number
        elif what == "replace" and rest[0] in live:
            live[rest[1]] = live.pop(rest[0])
        elif what == "remove":
            live.pop(rest[0], None)
    for name, file in _names(log, chance).items():
        if file is None:
            (root / name).mkdir(mode=0o700, exist_ok=True)
            continue
        with (root / name).open("wb") as stream:
            for number, what, *rest in data[file]:
                if what == "truncate":
                    stream.truncate(rest[0])
                    continue
                at, written = rest
                if number > synced.get(file, -1):
                    written = chance.choice([written, written[: len(written) // 2], b"", written])
                stream.seek(at)
                stream.write(written)


def _names(log, chance):
    """The names that survive, each with the number of its file; None for a folder."""
    durable = {}
    for number, (what, *rest) in enumerate(log):
        if what == "sync_folder":
            durable[rest[0]] = number
    kept = {}

    def survives(number, *names):
        folders = [os.path.dirname(name) or "." for name in names]
        for folder in folders:
            least = durable.get(folder, -1)
            kept.setdefault(folder, chance.choice([len(log), least, chance.randint(least, max(least, len(log)))]))
        return any(number <= durable.get(folder, -1) for folder in folders) or all(
            number <= kept[folder] for folder in folders
        )

    names, count = {}, 0
    for number, (what, *rest) in enumerate(log):
        if what == "create":
            count += 1
        inside = all((os.path.dirname(name) or ".") in (".", *names) for name in rest[:1])
        if what not in ("create", "mkdir", "replace", "remove", "rmdir") or not inside:
            continue
        if not survives(number, *(rest if what == "replace" else rest[:1])):
            continue
        if what == "create":
            names[rest[0]] = count - 1
        elif what == "mkdir":
            names[rest[0]] = None
        elif what == "replace" and rest[0] in names:
            names[rest[1]] = names.pop(rest[0])
        elif what in ("remove", "rmdir"):
            names.pop(rest[0], None)
    return {name: file for name, file in names.items() if os.path.dirname(name) in ("", *names)}

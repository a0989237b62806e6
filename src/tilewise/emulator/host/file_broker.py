"""Opens files for the sandboxed program in its parent process.

Requests and answers are lines of JSON on a socket; an answer may carry a file descriptor. The parent decides which
paths are allowed: under the program's folder and --include to read, under --allow-write to read and write. Only regular
files are opened: a pipe or a device could block the parent."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import stat
import threading
from pathlib import Path
from typing import Any

from tilewise.emulator.host.options import Options

DIRECTORY, REGULAR = 4, 8  # dirent's d_type
MAX_REQUEST = 1 << 16  # bytes
MAX_ANSWER = 1 << 22  # bytes, for a folder's entries
FLAGS = {
    "r": os.O_RDONLY,
    "r+": os.O_RDWR,
    "w": os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
    "w+": os.O_RDWR | os.O_CREAT | os.O_TRUNC,
    "a": os.O_WRONLY | os.O_CREAT | os.O_APPEND,
    "a+": os.O_RDWR | os.O_CREAT | os.O_APPEND,
}


class FileBroker:
    """The parent's side: a thread that answers until the program's process ends."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._ours, self.theirs = socket.socketpair()
        self._thread = threading.Thread(target=self._serve, name="tilewise files", daemon=True)

    def start(self) -> None:
        """Call this after the program's process has inherited its end of the socket."""
        self.theirs.close()
        self._thread.start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._ours.shutdown(socket.SHUT_RDWR)  # the thread may be blocked in a receive
        self._ours.close()
        self.theirs.close()

    def _serve(self) -> None:
        pending = b""
        with contextlib.suppress(OSError):
            while data := self._ours.recv(MAX_REQUEST):
                pending += data
                *lines, pending = pending.split(b"\n")
                for line in lines:
                    self._reply(line)
                if len(pending) > MAX_REQUEST:
                    return

    def _reply(self, line: bytes) -> None:
        descriptor = None
        try:
            request = json.loads(line)
            answer, descriptor = self._answer(str(request["do"]), str(request["name"]), str(request.get("mode", "")))
        except (ValueError, KeyError, TypeError, OSError, RuntimeError):  # RuntimeError: a link loop, or nested JSON
            answer = {}
        text = json.dumps(answer).encode()
        if len(text) >= MAX_ANSWER:
            text = b"{}"
        try:
            socket.send_fds(self._ours, [text + b"\n"], [] if descriptor is None else [descriptor])
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def _answer(self, what: str, name: str, mode: str) -> tuple[dict[str, Any], int | None]:
        own = str((Path(self.options.folder) / name).resolve())
        answer: dict[str, Any] = {"own": own}
        if what == "open":
            path = self._allowed(name, mode != "r")
            answer["allowed"] = path is not None
            return answer, None if path is None else _opened(path, mode)
        path = self._allowed(name, what in ("remove", "make"))
        answer["allowed"] = path is not None
        if what == "kind":
            answer["kind"], answer["size"] = _kind(path)
        elif what == "list" and path is not None and path.is_dir():
            answer["entries"] = sorted((p.name, DIRECTORY if p.is_dir() else REGULAR) for p in path.iterdir())
        elif what == "remove" and path is not None:
            path.unlink()
            answer["done"] = True
        elif what == "make":
            answer["there"] = Path(own).exists()
            if path is not None and not answer["there"]:
                path.mkdir()
                answer["done"] = True
        return answer, None

    def _allowed(self, name: str, writing: bool) -> Path | None:
        options = self.options
        folders = options.writable if writing else [options.folder, *options.include, *options.writable]
        for folder in folders:
            root = Path(folder).resolve()
            try:
                path = (root / name).resolve()
            except (OSError, ValueError, RuntimeError):
                continue
            if path.is_relative_to(root):
                return path
        return None


def _opened(path: Path, mode: str) -> int | None:
    flags = FLAGS[mode] | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o666)
    except OSError:
        return None
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    return None


def _kind(path: Path | None) -> tuple[int, int]:
    if path is None or not path.exists():
        return -1, 0
    return DIRECTORY if path.is_dir() else REGULAR, path.stat().st_size


class BrokeredFiles:
    """The program's side; descriptor -1: no socket, and so no files. Uses only the system calls write and recvmsg."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor) if descriptor >= 0 else None

    def request(self, what: str, name: str, mode: str = "") -> tuple[dict[str, Any], int | None]:
        """The parent's answer, and the file's descriptor if it opened one."""
        request = json.dumps({"do": what, "name": name, "mode": mode}).encode()
        if self._socket is None or len(request) >= MAX_REQUEST:
            return {}, None
        os.write(self._socket.fileno(), request + b"\n")
        data, descriptors = b"", list[int]()
        while not data.endswith(b"\n"):
            part, more, _, _ = socket.recv_fds(self._socket, 1 << 16, 1)
            if not part:
                return {}, None
            data, descriptors = data + part, descriptors + more
        return json.loads(data), descriptors[0] if descriptors else None

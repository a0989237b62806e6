"""The live page: served to this machine only, with an editor or from a watched file; every change is run again.

One address, with a token in it; requests without the token, for another host or from another origin are refused.
The server is stateless: it answers a text with its scenes. The page contains no run of the file and requests it.
"""

from __future__ import annotations

import io
import json
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tilewise.emulator.limits import DEFAULT
from tilewise.emulator.source.source import read_source
from tilewise.errors import TilewiseError
from tilewise.system.output import write_whole
from tilewise.teaching.page.edits import Edits, run_edit
from tilewise.teaching.page.exploring import Page, explore
from tilewise.teaching.page.payload import Scene
from tilewise.teaching.page.recording import COURSE

HOST = "127.0.0.1"
MOST_BYTES = 200_000  # of a kernel
POLL = 0.1  # seconds between looks at the watched file
TICK = 1.0  # seconds within which two changes of a file may have the same mtime
SECONDS = 3.0  # default time limit of a change
PATIENCE = 20.0  # seconds that a request for news waits
REQUEST = 10.0  # seconds to receive a request, and to send an answer


class Workbench:
    """The kernel's current text, its version number, and its scenes or its error.

    Must be made before the process starts threads (see `Edits`)."""

    def __init__(self, kernel: Path | None, watch: bool, settings: Mapping[str, Any]) -> None:
        self.file = kernel or COURSE
        self.watch = watch
        self.text, self.number = read_source(self.file).text, 0
        self._seen: tuple[int, ...] = ()  # nothing yet: the first look reads the file again
        self._state, self._run_lock = threading.Lock(), threading.Lock()
        self._last_run: tuple[int, dict[str, Any]] = (-1, {})  # the last text of the file that was run
        self._shown: dict[str, tuple[Scene, ...]] = {}
        self._can_save = kernel is not None  # a file of the user's, which may be saved to
        self._saved_text = self.text  # the text on disk when it was last read for the page or saved
        self.edits = Edits(partial(run_edit, {"limits": replace(DEFAULT, seconds=SECONDS), **settings}))

    def close(self) -> None:
        self.edits.close()

    def news(self, known: int) -> dict[str, Any]:
        """The file's text and scenes as soon as they are newer than `known`; empty after `PATIENCE` seconds."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            number, text = self.now()
            if number > known:
                return {"number": number, "text": text, **self._run_once(number, text)}
            time.sleep(POLL)
        return {"number": known}

    def _run_once(self, number: int, text: str) -> dict[str, Any]:
        """The answer for a version of the file, run once for all pages."""
        with self._run_lock:
            if self._last_run[0] != number:
                self._last_run = number, self.edits.run(text)
            return self._last_run[1]

    def now(self) -> tuple[int, str]:
        """The file's text and its number, which belong together."""
        with self._state:
            try:
                about = self.file.stat()
                seen = (about.st_mtime_ns, about.st_size, about.st_ino)
                if seen != self._seen or time.time() - about.st_mtime < TICK:
                    text, self._seen = read_source(self.file).text, seen
                    if text != self.text:
                        self.text, self.number = text, self.number + 1
            except (OSError, TilewiseError):
                pass  # an editor is replacing the file
            return self.number, self.text

    def save(self, text: str) -> dict[str, Any]:
        """Write the text to the file, unless another program has changed it since."""
        if not self._can_save or self.watch:
            return {"error": "there is no file to save to: start with tilewise explore FILE --live"}
        with self._state:
            try:
                if read_source(self.file).text not in (self._saved_text, text):
                    return {
                        "error": f"{self.file.name} has changed on disk since it was opened: it was not overwritten"
                    }
                write_whole(self.file, text)
            except (OSError, TilewiseError) as error:
                return {"error": str(error)}
            self._saved_text = self.text = text
        return {}

    def page(self, language: str) -> str:
        """The initial page: the file's text, and a scene of the course's kernel that is hidden until the first run of
        the text arrives."""
        number, text = self.now()
        live = {"text": text, "number": number, "watch": self.watch, "file": self.file.name, "saves": self._can_save}
        with self._state:
            if language not in self._shown:
                made = explore(what_if=False, lang=language).scenes[:1]
                self._shown[language] = tuple(replace(scene, title=self.file.name) for scene in made)
        return Page(self._shown[language], language, live=live).html


class Incoming(io.RawIOBase):
    """A client's request with one deadline for all of it, so that a slow client does not block a thread."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self._end = connection, time.monotonic() + REQUEST

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)


class RequestHandler(BaseHTTPRequestHandler):
    server: Server

    def setup(self) -> None:
        super().setup()
        self.rfile.close()
        self.rfile = io.BufferedReader(Incoming(self.connection))

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        if not self._allowed():
            return
        if path == f"/{self.server.token}/":
            self._answer(200, self.server.workbench.page(self.server.language).encode(), "text/html; charset=utf-8")
        elif path == f"/{self.server.token}/news":
            known = query.removeprefix("known=")
            self._json(self.server.workbench.news(int(known) if known.isdigit() else 0))
        else:
            self._answer(404, b"not found")

    def do_POST(self) -> None:
        if not self._allowed():
            return
        length = self.headers.get("Content-Length", "")
        workbench = self.server.workbench
        run = workbench.edits.run
        answers: dict[str, Callable[[str], dict[str, Any]]]
        answers = {"run": run, "order": partial(run, order=True), "save": workbench.save}
        answer = answers.get(self.path.removeprefix(f"/{self.server.token}/"))
        if answer is None:
            self._answer(404, b"not found")
        elif not length.isdigit() or int(length) > MOST_BYTES:
            self._json({"error": f"the page takes a kernel of at most {MOST_BYTES} bytes", "line": None}, 413)
        else:
            text = self.rfile.read(int(length))
            if len(text) == int(length):  # else the page was closed meanwhile
                self._json(answer(text.decode("utf-8", "replace")))

    def _allowed(self) -> bool:
        """The right token, our own host in the Host header, and no other origin."""
        here = {f"{name}:{self.server.server_port}" for name in (HOST, "localhost")}
        token = self.path.split("/")[1] if self.path.count("/") >= 2 else ""
        origin = self.headers.get("Origin")
        fetched = self.headers.get("Sec-Fetch-Site", "none")
        right = (
            secrets.compare_digest(token.encode(), self.server.token.encode())
            and self.headers.get("Host") in here
            and (origin is None or origin in {f"http://{name}" for name in here})
            and fetched in ("none", "same-origin")
        )
        if not right:
            self._answer(403, b"refused")
        return right

    def _json(self, document: dict[str, Any], code: int = 200) -> None:
        self._answer(code, json.dumps(document, ensure_ascii=False).encode(), "application/json")

    def _answer(self, code: int, body: bytes, kind: str = "text/plain; charset=utf-8") -> None:
        self.connection.settimeout(REQUEST)
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in (
            ("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer"),
            ("X-Frame-Options", "DENY"), ("Cross-Origin-Resource-Policy", "same-origin"),
        ):  # fmt: skip
            self.send_header(name, value)
        try:
            self.end_headers()
            self.wfile.write(body)
        except OSError:  # the page was closed while it waited, or does not read
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged: the address holds the token."""


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, workbench: Workbench, language: str, port: int = 0) -> None:
        super().__init__((HOST, port), RequestHandler)
        self.workbench = workbench
        self.language = language
        self.token = secrets.token_urlsafe(18)

    def server_close(self) -> None:
        super().server_close()
        self.workbench.close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A closed connection is no error; others are reported as usual."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.server_port}/{self.token}/"

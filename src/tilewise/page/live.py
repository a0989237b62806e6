"""The page served on this machine only, with an editor or from a file that is watched: every change is run again.

One address, with a token in it; whoever asks without the token, for another host or from another origin is refused.
Nothing is kept: a change comes in, its scenes go out.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tilewise.engines.simt.limits import DEFAULT
from tilewise.errors import KernelError, TilewiseError
from tilewise.page import Page, explore
from tilewise.page.payload import scene_json
from tilewise.page.recording import COURSE

HOST = "127.0.0.1"
MOST_BYTES = 200_000  # of a kernel
POLL = 0.1  # seconds between looks at the watched file
SECONDS = 3.0  # that a change may run, where no --limit says otherwise
PATIENCE = 20.0  # seconds a question for news waits


class Workbench:
    """The kernel as it is now: its text, its number, and the scenes or the error that it gives."""

    def __init__(self, kernel: Path | None, watch: bool, settings: Mapping[str, Any]) -> None:
        self.file = kernel or COURSE
        self.watch = watch
        self.settings = {"limits": replace(DEFAULT, seconds=SECONDS), **settings}
        self.lock = threading.Lock()
        self.number = 0
        self.text = self.file.read_text(encoding="utf-8")
        self.seen = self.file.stat().st_mtime_ns

    def scenes(self, text: str) -> dict[str, Any]:
        """The text run: one scene, and the order that fails where there is one; or what is wrong and where."""
        started = time.perf_counter()
        with self.lock:  # the interpreter's threads would only slow each other down
            try:
                page = explore(as_kernel(text), what_if=False, **self.settings)
            except KernelError as error:
                return {"error": str(error), "line": error.line, "column": error.column}
            except TilewiseError as error:
                return {"error": str(error), "line": None}
        made = [scene_json(scene) for scene in page.scenes]
        return {
            "scenes": made,
            "settings": [{"drops": [], "tile": None, "schedule": s.schedule} for s in page.scenes],
            "milliseconds": round(1000 * (time.perf_counter() - started)),
        }

    def news(self, known: int) -> dict[str, Any]:
        """What stands in the file, as soon as that is newer than `known`; empty after a while without news."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            self._look()
            if self.number > known:
                return {"number": self.number, "text": self.text, **self.scenes(self.text)}
            time.sleep(POLL)
        return {"number": known}

    def _look(self) -> None:
        try:
            changed = self.file.stat().st_mtime_ns
            if changed != self.seen:
                self.text = self.file.read_text(encoding="utf-8")
                self.seen, self.number = changed, self.number + 1
        except (OSError, UnicodeDecodeError):
            return  # an editor is just replacing it

    def page(self, language: str) -> str:
        """The page to begin with; a kernel that does not run yet is shown in the editor of the course's."""
        live = {"text": self.text, "watch": self.watch, "file": self.file.name}
        try:
            page = explore(as_kernel(self.text), what_if=False, lang=language, **self.settings)
        except TilewiseError:
            page = explore(what_if=False, lang=language)
        return Page(page.scenes, language, live=live).html


def as_kernel(text: str) -> str:
    """A text that is not one yet is still the user's text, not a file's name."""
    return text if "__global__" in text else f"{text}\n// __global__"


class Handler(BaseHTTPRequestHandler):
    server: Server

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
        if self.path != f"/{self.server.token}/run":
            self._answer(404, b"not found")
        elif not length.isdigit() or int(length) > MOST_BYTES:
            self._answer(413, f"a kernel of at most {MOST_BYTES} bytes".encode())
        else:
            self._json(self.server.workbench.scenes(self.rfile.read(int(length)).decode("utf-8", "replace")))

    def _allowed(self) -> bool:
        """The right token, our own host in the Host header, and no other origin behind the question."""
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

    def _json(self, document: dict[str, Any]) -> None:
        self._answer(200, json.dumps(document, ensure_ascii=False).encode(), "application/json")

    def _answer(self, code: int, body: bytes, kind: str = "text/plain; charset=utf-8") -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in (
            ("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer"),
            ("X-Frame-Options", "DENY"), ("Cross-Origin-Resource-Policy", "same-origin"),
        ):  # fmt: skip
            self.send_header(name, value)
        self.end_headers()
        try:
            self.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the page was closed while it waited

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged: the address holds the token."""


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, workbench: Workbench, language: str, port: int = 0) -> None:
        super().__init__((HOST, port), Handler)
        self.workbench = workbench
        self.language = language
        self.token = secrets.token_urlsafe(18)

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.server_port}/{self.token}/"

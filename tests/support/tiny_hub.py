"""A hub of models on loopback: as much of the Hugging Face hub's interface as its client asks for."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class TinyHub:
    """Repositories as folders, by `OWNER/NAME`, and what was asked for."""

    def __init__(self, repositories: dict[str, Path]) -> None:
        self.repositories = repositories
        self.asked: list[str] = []
        self.url = ""


@contextmanager
def served(repositories: dict[str, Path]) -> Iterator[TinyHub]:
    """Serve repositories until the block ends."""
    hub = TinyHub(repositories)

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.answer(with_body=False)

        def do_GET(self) -> None:
            self.answer(with_body=True)

        def answer(self, with_body: bool) -> None:
            hub.asked.append(f"{self.command} {self.path}")
            status, body, name = found(hub, self.path)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("ETag", f'"{hashlib.sha256(body).hexdigest()}"')
            self.send_header("X-Repo-Commit", COMMIT)
            if status == 404:
                self.send_header("X-Error-Code", name)
            self.end_headers()
            if with_body:
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    hub.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def found(hub: TinyHub, path: str) -> tuple[int, bytes, str]:
    """Return status, body, and for what is not there the hub's code of the error."""
    path = path.partition("?")[0]
    is_listing = path.startswith("/api/models/")
    parts = path.removeprefix("/api/models").strip("/").split("/")
    folder = hub.repositories.get("/".join(parts[:2]))
    if folder is None:
        return 404, b"", "RepoNotFound"
    if is_listing:
        files = [{"rfilename": file.name} for file in sorted(folder.iterdir())]
        return 200, json.dumps({"id": "/".join(parts[:2]), "sha": COMMIT, "siblings": files}).encode(), ""
    file = folder / parts[-1]
    return (200, file.read_bytes(), "") if file.is_file() else (404, b"", "EntryNotFound")

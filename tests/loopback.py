"""HTTP servers on loopback, in threads of the tests."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ssl import SSLContext
from typing import Any


class Handler(BaseHTTPRequestHandler):
    """Answers in one call, and logs nothing."""

    def answer(
        self, status: int, body: bytes = b"", headers: Mapping[str, Any] | None = None
    ) -> None:
        """Send a body; ``headers`` of None are omitted, and override its length."""
        self.send_response(status)
        for name, value in {"Content-Length": len(body), **(headers or {})}.items():
            if value is not None:
                self.send_header(name, str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(handler: Callable[..., Any], context: SSLContext | None = None) -> Iterator[str]:
    """Serve meanwhile; yield the address, without a path."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http{'s' if context else ''}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()

"""HTTP servers on loopback, in threads of the tests."""

import sys
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


class Server(ThreadingHTTPServer):
    """Prints nothing of clients that leave early, which another test would capture."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def serving(handler: Callable[..., Any], context: SSLContext | None = None) -> Iterator[str]:
    """Serve meanwhile; yield the address, without a path."""
    server = Server(("127.0.0.1", 0), handler)
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http{'s' if context else ''}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()

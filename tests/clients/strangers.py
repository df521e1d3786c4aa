"""Whom a client asks besides the proxy: a listener that clients take for their way to the Internet, and that says no."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Strangers:
    """hosts: every host that was asked for, in order, with its port."""

    port: int
    hosts: list[str] = field(default_factory=list)

    @property
    def environ(self) -> dict[str, str]:
        """What makes a client go out through here, except to this machine."""
        way, here = f"http://127.0.0.1:{self.port}", "127.0.0.1,localhost"
        both = {"HTTPS_PROXY": way, "HTTP_PROXY": way, "ALL_PROXY": way, "NO_PROXY": here}
        return both | {name.lower(): value for name, value in both.items()}


@contextmanager
def listening() -> Iterator[Strangers]:
    class Refusal(socketserver.StreamRequestHandler):
        """`CONNECT host:port`, or `GET http://host/`: both name in their second word whom is asked for."""

        timeout = 10

        def handle(self) -> None:
            words = self.rfile.readline().decode("latin-1").split()
            if len(words) > 1:
                strangers.hosts.append(words[1])
            self.wfile.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    class Listener(socketserver.ThreadingTCPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """A client that hangs up early is nothing to report."""

    with Listener(("127.0.0.1", 0), Refusal) as server:
        strangers = Strangers(server.server_address[1])
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield strangers
        finally:
            server.shutdown()
            thread.join()

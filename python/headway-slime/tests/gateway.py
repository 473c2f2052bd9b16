"""A gateway that answers as it is told, over real HTTP."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, Any]


def error(status: int, code: str, message: str = "no") -> Answer:
    """An error as Headway's gateway has it."""
    return status, {"error": {"message": message, "type": "x", "code": code}}


def task(version: int = 0, batch: str = "b0", **changes: Any) -> dict[str, Any]:
    """A task of two samples of one group and one of another."""
    samples = [
        {
            "id": 10 + number,
            "group": group,
            "tokens": [1, 2, 3, 4],
            "loss_mask": [0, 0, 1, 1],
            "rollout_log_probs": [0.0, 0.0, -0.5, -0.25],
            "versions": [version, version, version, version],
            "reward": reward,
            "masked": False,
        }
        for number, (group, reward) in enumerate([(7, 1.0), (8, 0.0), (7, 0.5), (8, -1.0)])
    ]
    return {
        "task": "train",
        "version": version,
        "batch": batch,
        "deploy_version": version,
        "updates": 1,
        "correction": {"name": "ppo_clip", "low": 0.8, "high": 1.2},
        "samples": samples,
        "lease": f"train-{version}",
        "lease_sec": 600.0,
        **changes,
    }


class Gateway:
    """Gives the answers of each path in their order, the last one again and again; keeps what was asked."""

    def __init__(self, **answers: list[Answer]) -> None:
        self.answers = answers
        self.asked: list[tuple[str, Any]] = []
        self.tokens: list[str | None] = []
        self.changed = threading.Condition()
        gateway = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self.do_POST()

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                path = self.path.removeprefix("/trainer/")
                with gateway.changed:
                    gateway.asked.append((path, json.loads(body) if body else None))
                    gateway.tokens.append(self.headers.get("Authorization"))
                    waiting = gateway.answers[path]
                    status, said = waiting.pop(0) if len(waiting) > 1 else waiting[0]
                    gateway.changed.notify_all()
                data = b"" if said is None else said if isinstance(said, bytes) else json.dumps(said).encode()
                self.send_response(status)
                if status == 429:
                    self.send_header("Retry-After", "7")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=lambda: self._server.serve_forever(0.01), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def bodies(self, path: str) -> list[Any]:
        return [body for asked, body in self.asked if asked == path]

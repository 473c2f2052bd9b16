"""Keeps a lease while slime trains."""

from __future__ import annotations

import logging
import threading

from headway_slime.client import Client, Conflict, HeadwayError

_log = logging.getLogger("headway_slime")


class Heartbeat:
    """A thread that extends a lease until `stop`. It ends by itself where the lease is lost."""

    def __init__(self, client: Client, lease: str, lease_sec: float) -> None:
        self._client = client
        self._lease = lease
        # Two beats may fail before the lease is over.
        self._every_sec = lease_sec / 3
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="headway-heartbeat", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread. A beat that is under way is not waited for: it changes nothing any more."""
        self._stopped.set()

    def _beat(self) -> None:
        while not self._stopped.wait(self._every_sec):
            try:
                self._client.heartbeat(self._lease, patience_sec=0.0)
            except Conflict as error:
                if not self._stopped.is_set():
                    _log.error("the lease %s is lost: %s", self._lease, error)
                return
            except HeadwayError as error:
                _log.warning("no heartbeat of the lease %s: %s", self._lease, error)

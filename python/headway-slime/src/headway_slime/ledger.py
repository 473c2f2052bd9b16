"""What slime has pulled last, and whether its step was reported: a file beside slime's checkpoints."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from headway_slime.client import HeadwayError


class LedgerError(HeadwayError):
    """The ledger cannot be read."""


@dataclass(frozen=True)
class Entry:
    """The step of a rollout."""

    rollout_id: int
    #: The version that the step starts from.
    version: int
    batch: str
    lease: str
    reported: bool


class Ledger:
    """The file. It is replaced whole, and on disk before `write` returns."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> Entry | None:
        """The last entry; `None`: nothing was pulled yet."""
        try:
            entry = Entry(**json.loads(self._path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError) as error:
            raise LedgerError(f"{self._path} says which step slime has done, and cannot be read: {error}") from error
        numbers = (entry.rollout_id, entry.version)
        if not all(type(number) is int for number in numbers) or type(entry.reported) is not bool:
            raise LedgerError(f"{self._path} says which step slime has done, and is damaged: put the right one back")
        return entry

    def write(self, entry: Entry) -> None:
        """Keeps the entry instead of the one before."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        draft = self._path.with_suffix(".new")
        with open(draft, "w", encoding="utf-8") as file:
            json.dump(asdict(entry), file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, self._path)
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

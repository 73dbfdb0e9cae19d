"""A fresh place to run the program in: empty home, own folders, a clean environment. Removed at the end."""

from __future__ import annotations

import itertools
import os
import sys
import sysconfig
import tempfile
from pathlib import Path
from types import TracebackType

ROOT = Path(__file__).resolve().parent.parent
HERMES = Path(sysconfig.get_path("scripts")) / "hermes"


class Place:
    """Folders and environment of measured programs, from `with` to the end of it."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="hermes-bench-", ignore_cleanup_errors=True)
        self.root = Path(self._folder.name)
        self._numbers = itertools.count(1)
        self.work = self.folder("work")
        self.user_home = self.folder("user")

    def __enter__(self) -> Place:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._folder.cleanup()

    def folder(self, name: str) -> Path:
        """A new folder whose name begins so."""
        path = self.root / f"{name}-{next(self._numbers)}"
        path.mkdir()
        return path

    def file(self, name: str, text: str) -> Path:
        """A new file with this text."""
        path = self.root / f"{next(self._numbers)}-{name}"
        path.write_text(text, encoding="utf-8")
        return path

    def env(self, **more: str) -> dict[str, str]:
        """A whole environment: nothing of the caller's but the search path; a fresh HERMES_HOME each time."""
        return {
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
            "PYTHONPATH": str(ROOT),
            "HOME": str(self.user_home),
            "HERMES_HOME": str(self.folder("home")),
            "LANG": "C.UTF-8",
            **more,
        }

    def pointed(self, base_url: str, **more: str) -> dict[str, str]:
        """`env` with the server and a key in it."""
        return self.env(OPENAI_BASE_URL=base_url, OPENAI_API_KEY="none", **more)

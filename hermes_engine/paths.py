"""Where things are: the home folder and its files, names that are safe as file names, private files.

Knows no settings. Everything under the home is created 0700 / 0600 from the moment it exists
(contract, section 2), whatever the umask.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hermes_engine.errors import ConfigError, StateError, UsageError

DIR_MODE = 0o700
FILE_MODE = 0o600
_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")


@dataclass(frozen=True, slots=True)
class Home:
    """The folder that holds a person's settings and state (`HERMES_HOME`, default `~/.hermes`)."""

    root: Path

    @classmethod
    def from_env(cls, env: dict[str, str] | os._Environ[str] | None = None) -> Home:
        """The home named by the environment. Does not touch the disk. Raises ConfigError when nothing names one."""
        values = os.environ if env is None else env
        named = values.get("HERMES_HOME", "")
        if named:
            return cls(expanded(named).absolute())
        folder = values.get("HOME") or _listed_home()
        if not folder:
            raise ConfigError("there is no home folder: HOME is not set", hint="set HOME, or HERMES_HOME")
        return cls(Path(folder) / ".hermes")

    @property
    def config(self) -> Path:
        """`config.yaml` of the home."""
        return self.root / "config.yaml"

    @property
    def dotenv(self) -> Path:
        """`.env` with keys."""
        return self.root / ".env"

    @property
    def soul(self) -> Path:
        """`SOUL.md`, the standing instructions of profile `default`."""
        return self.root / "SOUL.md"

    @property
    def profiles(self) -> Path:
        """Folder of the user's own profiles."""
        return self.root / "profiles"

    @property
    def state_db(self) -> Path:
        """Sessions, tasks, agents, orders. `HERMES_STATE_DIR` moves it off a network home."""
        return Path(os.environ.get("HERMES_STATE_DIR") or self.root) / "state.db"

    @property
    def logs(self) -> Path:
        """Folder of log files."""
        return self.root / "logs"

    @property
    def outputs(self) -> Path:
        """Folder of full tool outputs that were cut for the model."""
        return self.root / "outputs"

    @property
    def drafts(self) -> Path:
        """Folder of what was written and not sent, a file a chat."""
        return self.root / "drafts"

    def ensure(self) -> Home:
        """Creates the folder, private. Raises StateError when it cannot be used."""
        private_dir(self.root)
        return self


def user_home() -> Path:
    """The person's own home folder; `/` for a user without one, as in a container."""
    return Path(os.environ.get("HOME") or _listed_home() or "/")


def _listed_home() -> str:
    """The home folder that the system's list of users tells, "" for a user who is not in it."""
    found = os.path.expanduser("~")  # noqa: PTH111 - pathlib raises for an unknown user
    return "" if found == "~" else found


def expanded(text: str) -> Path:
    """The path with `~` and `~user` replaced; as written where there is no such user or home."""
    return Path(os.path.expanduser(text))  # noqa: PTH111 - pathlib raises for an unknown user


def private_dir(path: Path) -> Path:
    """Creates `path` and its missing parents 0700; leaves existing folders' modes alone."""
    missing: list[Path] = []
    current = path
    while not current.exists():
        missing.append(current)
        current = current.parent
    try:
        for folder in reversed(missing):
            folder.mkdir(mode=DIR_MODE, exist_ok=True)
            folder.chmod(DIR_MODE)
    except OSError as error:
        raise StateError(f"cannot create {path}: {error.strerror or error}") from error
    if not path.is_dir():
        raise StateError(f"{path} is not a folder")
    return path


def open_private(path: Path, flags: int) -> int:
    """`os.open` with mode 0600 whatever the umask; returns the descriptor."""
    descriptor = os.open(path, flags | os.O_CLOEXEC, FILE_MODE)
    with contextlib.suppress(OSError):
        if os.fstat(descriptor).st_mode & 0o777 != FILE_MODE:
            os.fchmod(descriptor, FILE_MODE)
    return descriptor


def write_atomic(
    path: Path,
    data: str | bytes,
    *,
    mode: int = FILE_MODE,
    owner: tuple[int, int] | None = None,
    sync: bool = True,
    follow: bool = True,
) -> None:
    """Replaces the file's content so that a reader sees the old or the new whole, never a part.

    Args:
        path: target; its folder must exist.
        data: text (written as UTF-8 without a mark) or bytes.
        mode: of the new file; kept private by default.
        owner: user and group of the new file, where we may give it away; ours by default.
        sync: whether to fsync before the replace.
        follow: a symlink is followed, so that the link stays; else it is replaced.
    """
    target = path.resolve() if follow and path.is_symlink() else path
    payload = data.encode() if isinstance(data, str) else data
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            if owner is not None and owner != (os.geteuid(), os.getegid()):
                with contextlib.suppress(OSError):
                    os.fchown(stream.fileno(), *owner)
            os.fchmod(stream.fileno(), mode)
            stream.write(payload)
            stream.flush()
            if sync:
                os.fsync(stream.fileno())
        os.replace(name, target)  # noqa: PTH105 - the pair to mkstemp
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)  # noqa: PTH108
        raise


def safe_name(kind: str, name: str) -> str:
    """`name` when it can stand as one path component, else UsageError (faults 10.6)."""
    if not _SAFE_NAME.match(name) or ".." in name:
        raise UsageError(
            f"{kind} {name!r} is not a usable name", hint="letters, digits, dot, dash and underscore; no path"
        )
    return name


def shipped(folder: str) -> Path:
    """A data folder that travels with the package: `shipped("profiles")`. Wheel first, then checkout."""
    package = Path(__file__).parent
    packed = package / "_shipped" / folder
    return packed if packed.is_dir() else package.parent / folder

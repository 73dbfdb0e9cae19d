"""Which files are out of reach and which are touchy: keys, state, start-up files, the system's own.

Paths come here resolved (no link, no `..`). Knows nothing of agents or modes: it only gives reasons.
"""

from __future__ import annotations

import copy
import itertools
import os
import re
import stat
from fnmatch import fnmatchcase
from pathlib import Path

from hermes_engine.paths import Home

_HOME_SECRETS = (".env", ".env.*", "auth*", "*.db", "*.db-*", "*.key", "*.pem")
_USER_SECRETS = (
    ".ssh/id_*", ".ssh/*_rsa", ".ssh/*_ed25519", ".ssh/*.pem", ".ssh/*.key", ".gnupg/private-keys*", ".gnupg/secring*",
    ".aws/credentials", ".aws/sso/*", ".netrc", "_netrc", ".git-credentials", ".config/git/credentials", ".npmrc",
    ".pypirc", ".config/gh/hosts.yml", ".config/hub", ".docker/config.json", ".kube/config", ".azure/*token*",
    ".config/gcloud/*credential*", ".config/gcloud/legacy_credentials/*", ".cargo/credentials*", ".vault-token",
    ".password-store/*", ".local/share/keyrings/*", ".mozilla/*/logins.json", ".config/*/Login Data",
)  # fmt: skip
_SYSTEM_SECRETS = ("/etc/shadow*", "/etc/gshadow*", "/etc/sudoers*", "/etc/ssh/*_key", "/root/.ssh/id_*")
_START_UP = (
    ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv",
    ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc", ".xprofile", ".xinitrc", ".xsessionrc",
    ".inputrc",
    ".config/fish/*", ".config/autostart/*", ".config/systemd/*", ".config/environment.d/*", ".pam_environment",
    ".gitconfig", ".config/git/*", ".vimrc", ".config/nvim/*", ".pythonrc*", ".Rprofile",
)  # fmt: skip
_CREDENTIAL_FOLDERS = (".ssh", ".gnupg", ".aws", ".kube", ".docker", ".azure", ".config/gcloud", ".password-store")
_SYSTEM = (
    "/etc",
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/boot",
    "/sys",
    "/proc",
    "/dev",
    "/var/spool/cron",
)
_HARMLESS_DEVICES = frozenset({"/dev/null", "/dev/zero", "/dev/full", "/dev/stdout", "/dev/stderr", "/dev/tty"})
_RAW_DISK = re.compile(
    r"/dev/(?:[shvx]?v?d[a-z]+\d*|nvme\d+(?:n\d+(?:p\d+)?)?|mmcblk\d+(?:p\d+)?|disk/.+|mapper/.+|dm-\d+|md\d+|r?disk\d+s?\d*)$"
)
_HOMES = frozenset(map(Path, ("/home", "/Users")))
_ROOTS_HOMES = frozenset(map(Path, ("/root", "/var/root")))
_GIT_OWN = re.compile(
    r"/\.git(?:$|/(?:hooks/|config(?:\.worktree)?$|commondir$|info/|worktrees/|modules/.*/(?:hooks/|config$)))"
)
"""Also the file `.git` itself and what points elsewhere: whoever writes that chooses whose settings git obeys."""


class Protected:
    """Reasons for one person's folders.

    Args:
        home: the home folder of this program.
        user_homes: home folders of the person and of the commands, the first of them real.
    """

    def __init__(self, home: Home, *user_homes: Path) -> None:
        self.home = Path(os.path.realpath(home.root))
        self._state = Path(os.path.realpath(home.state_db.parent))
        self.user_homes = tuple(dict.fromkeys(Path(os.path.realpath(folder)) for folder in user_homes))

    def within(self, user_home: Path) -> Protected:
        """The same for an agent whose commands have another home folder, given without links: looks nothing up."""
        other = copy.copy(self)
        other.user_homes = tuple(dict.fromkeys((user_home, *self.user_homes)))
        return other

    def against_reading(self, path: Path) -> str | None:
        """Why this file is never read, or None."""
        text = str(path)
        for folder in {self.home, self._state}:
            if path.is_relative_to(folder) and any(fnmatchcase(path.name, item) for item in _HOME_SECRETS):
                return "it holds keys or state of this program"
        if any(fnmatchcase(text, item) for item in _SYSTEM_SECRETS):
            return "it holds credentials of the system"
        if not path.name.endswith(".pub") and self._matches(path, _USER_SECRETS):
            return "it holds credentials"
        if text == "/proc" or text.startswith("/proc/"):
            return "files in /proc can hold secrets or have no end"
        return None

    def against_writing(self, path: Path) -> str | None:
        """Why this file is never written, or None."""
        text = str(path)
        if text.startswith(("/proc/", "/sys/", "/dev/")) and not text.startswith("/dev/shm/"):
            return "it is no ordinary file"
        return self.against_reading(path)

    def risk(self, path: Path, inside: Path | None = None) -> str | None:
        """Why writing this file needs a person's yes, or None.

        Args:
            path: what would be written, made or deleted.
            inside: the working folder: what lies in it is not the system's, wherever it is.
        """
        text = str(path)
        if text in _HARMLESS_DEVICES or text.startswith(("/dev/fd/", "/dev/shm/")):
            return None
        if reason := self.against_writing(path):
            return reason
        if path.is_relative_to(self.home) and not path.is_relative_to(self.home / "outputs"):
            return "it belongs to this program's settings"
        if any(
            path == home / name or (home / name) in path.parents
            for home in self.user_homes
            for name in _CREDENTIAL_FOLDERS
        ):
            return "it lies in a folder for credentials"
        if self._matches(path, _START_UP):
            return "it is a start-up or settings file of the person"
        if _GIT_OWN.search(text):
            return "git runs what stands there"
        if any(text == folder or text.startswith(folder + "/") for folder in _SYSTEM):
            own = inside is not None and str(inside) not in _SYSTEM and path.is_relative_to(inside)
            return None if own else "it belongs to the system"
        return None

    def holds_secrets(self, folder: Path) -> bool:
        """Whether a folder is one that mostly holds keys: reading through it as a whole needs a yes."""
        if folder == self.home:
            return True
        return any(folder == home / name for home in self.user_homes for name in _CREDENTIAL_FOLDERS)

    def is_root_or_home(self, path: Path) -> bool:
        """Whether deleting this tree would take the system or a home folder with it."""
        return any(path == home or path in home.parents for home in (*self.user_homes, self.home)) or path == Path("/")

    def against_opening(self, folder: Path) -> str | None:
        """Why a folder as a whole is not given to commands of strangers, or None."""
        if self.is_root_or_home(folder) or self.is_other_home(folder, folder):
            return "it is a home folder or holds one"
        if any(str(folder) == name or str(folder).startswith(name + "/") for name in (*_SYSTEM, "/run", "/var/run")):
            return "it belongs to the system"
        if folder.is_relative_to(self.home) or folder.is_relative_to(self._state):
            return "it belongs to this program"
        places = (home / name for home in self.user_homes for name in _CREDENTIAL_FOLDERS)
        return "it lies in a folder for credentials" if any(map(folder.is_relative_to, places)) else None

    def is_other_home(self, path: Path, but: Path) -> bool:
        """Whether it is the home of another user or holds such; `but`: a folder that is none, work is done there."""
        return path in _ROOTS_HOMES or path in _HOMES or (path.parent in _HOMES and path != but)

    def may_find(self, folder: Path, pattern: str) -> bool:
        """Whether a search below a folder for names like this can find a file that is never read."""
        pattern = pattern.lower()
        kinds = [(home, item, True) for home in (self.home, self._state) for item in _HOME_SECRETS]
        kinds += [(home, item, "*" in item) for home in self.user_homes for item in _USER_SECRETS]
        kinds += [(Path("/"), item.lstrip("/"), "*" in item) for item in _SYSTEM_SECRETS]
        for home, item, deep in kinds:
            name = Path(item).name.lower()
            if fnmatchcase(name, pattern) or (name != "*" and fnmatchcase(pattern, name)):
                place = home.joinpath(*itertools.takewhile(lambda part: "*" not in part, Path(item).parent.parts))
                if place.is_relative_to(folder) or (deep and folder.is_relative_to(place)):
                    return True
        return False

    def _matches(self, path: Path, patterns: tuple[str, ...]) -> bool:
        for home in self.user_homes:
            if path.is_relative_to(home):
                inner = str(path.relative_to(home))
                if any(fnmatchcase(inner, item) for item in patterns):
                    return True
        return False


def is_device(text: str) -> bool:
    """Whether a path names a device that is not known to be harmless."""
    return (
        text.startswith("/dev/")
        and text not in _HARMLESS_DEVICES
        and not text.startswith(("/dev/fd/", "/dev/shm/", "/dev/pts/"))
    )


def is_raw_disk(text: str) -> bool:
    """Whether a path names a disk or partition as a device."""
    return bool(_RAW_DISK.match(text))


def against_kind(path: Path) -> str | None:
    """Why this is no file that can be read as text: a folder, a device, a pipe; None when it can or is not there."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return None
    if stat.S_ISREG(mode):
        return None
    if stat.S_ISDIR(mode):
        return "it is a folder"
    kinds = ((stat.S_ISFIFO, "a named pipe"), (stat.S_ISSOCK, "a socket"), (stat.S_ISCHR, "a device"))
    return f"it is {next((name for test, name in kinds if test(mode)), 'a device')}"

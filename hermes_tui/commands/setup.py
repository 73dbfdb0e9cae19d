"""Slash commands that set this chat up: model, mode, tools, profile, looks. Knows no front end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, get_args

from hermes_engine.errors import UnknownName, UsageError
from hermes_engine.settings import Mode
from hermes_engine.settings.local_model import installed
from hermes_engine.toolsets import OF_WORKERS, TOOLSETS, expand, typed_names
from hermes_tui.commands.host import CommandHost, Completion, Output
from hermes_tui.commands.keys import plain_keys
from hermes_tui.commands.listing import recent_sessions
from hermes_tui.commands.registry import command, words
from hermes_tui.texts import _

MODES: tuple[str, ...] = get_args(Mode)


def _mode_help() -> dict[str, str]:
    return {
        "ask": _("edits and commands ask"),
        "edits": _("edits in this folder run, commands ask"),
        "plan": _("nothing that changes anything runs"),
        "auto": _("everything runs but what is risky"),
        "yolo": _("everything runs but the fixed list"),
    }


def known_models(host: CommandHost) -> list[str]:
    """Models a person may mean: this chat's, the settings', the embedded, those of recent chats. Reads the disk."""
    found = [host.engine.view(host.session).model, host.resolved.settings.model, "demo"]
    found += ["local"] if installed() is not None else []
    found += [row.model for row in recent_sessions(host.engine.sessions(), limit=50)]
    return [name for name in dict.fromkeys(found) if name]


def embedded_models() -> dict[str, str]:
    """The models that need no server of anybody's: name → what is to be said of it."""
    return {"demo": _("embedded: no key, no network"), "local": _("on this machine: no key, no network")}


def _model_words(host: CommandHost, typed: str) -> list[Completion]:
    helps = embedded_models()
    return words(typed, [(name, helps.get(name, "")) for name in known_models(host)])


@command("model", args="[name]", help="Show or change the model of this chat", group="Set-up", while_busy=True,
         blocking=True, complete=_model_words)  # fmt: skip
def model(host: CommandHost, args: str) -> None:
    if args:
        host.engine.set_model(host.session, args)
        host.show(Output("text", _("Model {name} from the next turn on.").format(name=args)))
    elif not host.open_screen("model"):
        here = host.engine.view(host.session).model
        rows = tuple((name, _("in use") if name == here else "") for name in known_models(host))
        host.show(Output("table", _("/model NAME changes it."), _("Models"), (_("model"), ""), rows))


def _mode_words(host: CommandHost, typed: str) -> list[Completion]:
    return words(typed, [(name, _mode_help()[name]) for name in MODES])


@command("mode", args="[name]", help="Show or change what runs without asking", group="Set-up",
         while_busy=True, complete=_mode_words)  # fmt: skip
def mode(host: CommandHost, args: str) -> None:
    if args:
        if args not in MODES:
            raise UnknownName("mode", args, MODES)
        host.engine.set_mode(host.session, args)
        host.show(Output("text", f"{args}: {_mode_help()[args]}"))
    elif not host.open_screen("mode"):
        here = host.engine.view(host.session).mode
        rows = tuple((name, _mode_help()[name], _("in use") if name == here else "") for name in MODES)
        host.show(Output("table", title=_("Modes"), columns=(_("mode"), "", ""), rows=rows))


def _toolset_words(host: CommandHost, typed: str) -> list[Completion]:
    return words(typed, [(name, ", ".join(TOOLSETS[name][:4])) for name in TOOLSETS])


def _change_words(host: CommandHost, typed: str) -> list[Completion]:
    return _toolset_words(host, typed) if " " in typed else words(typed, [("enable", ""), ("disable", "")])


@command("tools", args="[enable|disable NAME…]", help="Tools of this chat", group="Set-up", while_busy=True,
         complete=_change_words)  # fmt: skip
def tools(host: CommandHost, args: str) -> None:
    current = host.engine.view(host.session).toolsets
    if not args:
        rows = tuple((tool, name) for name in current for tool in TOOLSETS[name] if tool not in OF_WORKERS)
        line = _("/tools enable NAME, /tools disable NAME; `hermes tools` changes the profile.")
        host.show(Output("table", line, _("Tools on offer"), (_("tool"), _("toolset")), rows))
        return
    verb, *names = args.replace(",", " ").split()
    if verb not in ("enable", "disable"):
        raise UnknownName("verb", verb, ("enable", "disable"))
    if not names:
        raise UsageError(_("which toolset?"), hint="/toolsets")
    changed = expand(names)
    wanted = [*current, *changed] if verb == "enable" else [name for name in current if name not in changed]
    _set_toolsets(host, expand(wanted))


@command("toolsets", args="[a,b]", help="Show or choose the toolsets of this chat", group="Set-up", while_busy=True,
         complete=_toolset_words)  # fmt: skip
def toolsets(host: CommandHost, args: str) -> None:
    if args:
        _set_toolsets(host, () if args == "none" else typed_names(args))
        return
    current = host.engine.view(host.session).toolsets
    rows = tuple((name, _("on") if name in current else _("off"), ", ".join(TOOLSETS[name])) for name in TOOLSETS)
    columns = (_("toolset"), _("here"), _("tools"))
    host.show(Output("table", _("/toolsets a,b or none"), _("Toolsets"), columns, rows))


def _set_toolsets(host: CommandHost, names: tuple[str, ...]) -> None:
    host.engine.set_toolsets(host.session, names)
    line = _("Toolsets from the next turn on: {names}.").format(names=", ".join(names) or _("none"))
    host.show(Output("text", line))


def _profile_words(host: CommandHost, typed: str) -> list[Completion]:
    from hermes_engine.profiles import list_profiles

    return words(typed, [(item.name, item.description) for item in list_profiles(host.resolved.home)])


@command("profile", args="[name]", help="Show the profiles, or choose the one to start with", group="Set-up",
         while_busy=True, blocking=True, complete=_profile_words)  # fmt: skip
def profile(host: CommandHost, args: str) -> None:
    from hermes_engine.profiles import list_profiles, use

    if args:
        use(host.resolved.home, args)
        line = _("{name} is the profile of the next start; this chat stays as it is. Now: hermes -p {name}")
        host.show(Output("text", line.format(name=args)))
        return
    here = host.resolved.profile
    rows = tuple(
        (item.name, _("in use") if item.name == here else "", item.description)
        for item in list_profiles(host.resolved.home)
    )
    host.show(Output("table", title=_("Profiles"), columns=(_("profile"), "", _("description")), rows=rows))


@command("theme", args="[name]", help="Choose the colours of the app", group="Set-up", while_busy=True)
def theme(host: CommandHost, args: str) -> None:
    if not host.open_screen("theme", theme=args):
        host.show(Output("text", _("The plain shell uses the terminal's own colours; NO_COLOR turns them off.")))


@command("keys", help="What the keys do", group="Set-up", while_busy=True)
def keys(host: CommandHost, args: str) -> None:
    if not host.open_screen("keys"):
        rows = tuple(plain_keys(linear=host.kind == "linear"))
        host.show(Output("table", title=_("Keys"), columns=("", ""), rows=rows))


@command("settings", help="Show the settings in effect", group="Set-up", while_busy=True, blocking=True)
def settings(host: CommandHost, args: str) -> None:
    if not host.open_screen("settings"):
        from hermes_engine.redaction import Redactor

        values = Redactor(host.resolved.secrets).value(host.resolved.settings.model_dump(mode="json"))
        rows = tuple((key, shown_value(value)) for key, value in flat(values))
        line = _("{path}; `hermes config set KEY VALUE` changes it.").format(path=host.resolved.home.config)
        host.show(Output("table", line, _("Settings"), (_("key"), _("value")), rows))


def flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Settings as dotted keys with their values; an empty section is one value."""
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def shown_value(value: Any) -> str:
    """A setting's value as a person would write it in the file."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(shown_value(item) for item in value) + "]"
    return "{}" if value == {} else str(value)

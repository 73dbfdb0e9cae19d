"""The flags all commands share: declared once, given before or after the command's name, merged, resolved.

Knows the settings, not the engine. Importing it loads click only.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hermes_engine.errors import UsageError
from hermes_tui.texts import _

if TYPE_CHECKING:
    from hermes_engine.profiles import Resolved
    from hermes_engine.settings import Overrides

MODES = ("ask", "edits", "plan", "auto", "yolo")
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Flags:
    """What the command line said; None or False = not given."""

    profile: str | None = None
    model: str | None = None
    base_url: str | None = None
    api_key: str | None = dataclasses.field(default=None, repr=False)
    toolsets: str | None = None
    max_turns: int | None = None
    reasoning_effort: str | None = None
    mode: str | None = None
    resume: str | None = None
    continue_last: bool = False
    linear: bool = False

    def merged(self, later: Flags) -> Flags:
        """These flags with those of `later` over them."""
        given = {name: value for name, value in _items(later) if value not in (None, False)}
        return dataclasses.replace(self, **given)


def _items(flags: Flags) -> list[tuple[str, Any]]:
    return [(item.name, getattr(flags, item.name)) for item in dataclasses.fields(flags)]


_OPTIONS: dict[str, Callable[[FunctionT], FunctionT]] = {
    "profile": click.option("-p", "--profile", metavar="NAME", help=_("Profile to work with.")),
    "model": click.option("-m", "--model", metavar="NAME", help=_("Model; `demo` and `local` need no key.")),
    "base_url": click.option("--base-url", metavar="URL", help=_("OpenAI-compatible endpoint.")),
    "api_key": click.option("--api-key", metavar="KEY", help=_("Key (the environment is safer: flags can be seen).")),
    "toolsets": click.option("-t", "--toolsets", metavar="A,B", help=_("Toolsets on offer; '' for none.")),
    "max_turns": click.option("--max-turns", type=click.IntRange(min=1), metavar="N", help=_("Model requests a turn.")),
    "reasoning_effort": click.option("--reasoning-effort", type=click.Choice(EFFORTS), help=_("How long to think.")),
    "mode": click.option("--mode", type=click.Choice(MODES), help=_("What runs without asking.")),
    "resume": click.option("--resume", metavar="ID", help=_("Go on with a saved session.")),
    "continue_last": click.option("--continue", "continue_last", is_flag=True, help=_("Go on with the last session.")),
    "linear": click.option("--linear", is_flag=True, help=_("Append-only text, for screen readers.")),
}

ENDPOINT = ("profile", "model", "base_url", "api_key")
ENGINE = (*ENDPOINT, "toolsets", "max_turns", "reasoning_effort", "mode", "resume", "continue_last")
EVERY = (*ENGINE, "linear")


def takes(*names: str) -> Callable[[FunctionT], FunctionT]:
    """Gives a command the named common flags; its function gets one `flags: Flags` argument for all of them.

    A common flag given before the command's name that the command does not take is a usage error.
    """

    def decorate(function: FunctionT) -> FunctionT:
        @click.pass_context
        def call(context: click.Context, /, **values: Any) -> Any:
            own = Flags(**{name: values.pop(name) for name in names})
            before = context.find_object(Flags) if context.parent is not None else None
            for name, value in _items(before or Flags()):
                if value not in (None, False) and name not in names:
                    spelled = "continue" if name == "continue_last" else name.replace("_", "-")
                    raise UsageError(_("--{flag} means nothing to this command").format(flag=spelled))
            flags = (before or Flags()).merged(own)
            if flags.resume and flags.continue_last:
                raise UsageError(_("--resume and --continue cannot be combined"))
            return function(flags=flags, **values)

        call.__name__ = function.__name__
        call.__doc__ = function.__doc__
        call.__click_params__ = list(getattr(function, "__click_params__", []))  # type: ignore[attr-defined]
        for name in reversed(names):
            call = _OPTIONS[name](call)
        return call  # type: ignore[return-value]

    return decorate


def overrides(flags: Flags) -> Overrides:
    """The flags as the settings take them. Raises UnknownName for a toolset that does not exist."""
    from hermes_engine.settings import Overrides
    from hermes_engine.toolsets import typed_names

    toolsets = None if flags.toolsets is None else typed_names(flags.toolsets)
    return Overrides(
        profile=flags.profile,
        model=flags.model,
        base_url=flags.base_url,
        api_key=flags.api_key,
        toolsets=toolsets,
        max_turns=flags.max_turns,
        reasoning_effort=flags.reasoning_effort,
        mode=flags.mode,
    )


def load(flags: Flags) -> Resolved:
    """The settings in force; says nothing about them.

    Raises:
        ConfigError, UsageError: see `hermes_engine.profiles.resolve`; also for a set that costs tokens and has to
            be enabled in the profile before `-t` may name it.
    """
    from hermes_engine.profiles import resolve as resolve_profile
    from hermes_engine.toolsets import BY_NAME_ONLY, expand
    from hermes_tui.printing.faults import keep_out

    wanted = overrides(flags)
    resolved = resolve_profile(wanted)
    for name in BY_NAME_ONLY & set(wanted.toolsets or ()):
        own = resolve_profile(dataclasses.replace(wanted, toolsets=None)).settings.toolsets
        if name not in expand(own):
            raise UsageError(
                _("the toolset {name} is not enabled").format(name=name), hint=f"hermes tools enable {name}"
            )
    keep_out(resolved.secrets)
    return resolved


def here() -> Path:
    """The current folder. Raises UsageError when it is gone."""
    try:
        return Path.cwd()
    except OSError:
        raise UsageError(_("the current folder is gone"), hint=_("go to one that exists")) from None


def resolve(flags: Flags) -> Resolved:
    """`load`, with warnings about the set-up on standard error."""
    from hermes_tui.printing.streams import err

    resolved = load(flags)
    for warning in resolved.warnings:
        err(f"hermes: {warning}", style="yellow")
    return resolved

"""Slash commands that only look: what fills the context, what it cost, where we are. Knows no front end."""

from __future__ import annotations

import platform

from hermes_engine import __version__
from hermes_engine.messages import Message, Usage
from hermes_tui.commands.host import CommandHost, Output
from hermes_tui.commands.listing import money, thousands
from hermes_tui.commands.registry import command
from hermes_tui.texts import _

CHARACTERS_A_TOKEN = 4
"""Rough measure for parts of a conversation, of which no server reports tokens."""


@command("context", help="What fills the model's context", group="Look", while_busy=True)
def context(host: CommandHost, args: str) -> None:
    view = host.engine.view(host.session)
    parts = {"user": _("your messages"), "assistant": _("answers and calls"), "tool": _("tool results")}
    rows = []
    for role, name in parts.items():
        messages = [message for message in view.messages if message.role == role]
        size = sum(_size(message) for message in messages) // CHARACTERS_A_TOKEN
        rows.append((name, str(len(messages)), f"~{thousands(size)}"))
    about = "~" if view.estimated else ""
    if view.context_window:
        share = 100 * view.context_tokens // view.context_window
        line = _("{used} of {window} tokens, {share} %").format(
            used=about + thousands(view.context_tokens), window=thousands(view.context_window), share=share
        )
    else:
        line = _("{used} tokens; the model's size is unknown").format(used=about + thousands(view.context_tokens))
    columns = (_("part"), _("messages"), _("tokens"))
    host.show(Output("table", line, _("Context"), columns, tuple(rows)))


def _size(message: Message) -> int:
    return len(message.content) + sum(len(call.arguments) + len(call.name) for call in message.tool_calls)


@command("usage", help="Tokens and money, per agent", group="Look", while_busy=True)
def usage(host: CommandHost, args: str) -> None:
    rows = [
        (row.name, row.kind, row.model, *_usage_cells(row.own))
        for row in host.engine.agents()
        if row.own.total_tokens or not row.own.tokens_known or row.session == host.session
    ]
    columns = (_("agent"), _("kind"), _("model"), _("prompt"), _("answer"), _("cost"))
    host.show(Output("table", _("Since this program was started."), _("Usage"), columns, tuple(rows)))


def _usage_cells(used: Usage) -> tuple[str, str, str]:
    if not used.tokens_known and not used.total_tokens:
        return _("unknown"), _("unknown"), money(used)
    more = "" if used.tokens_known else "+"
    return thousands(used.prompt_tokens) + more, thousands(used.completion_tokens) + more, money(used)


@command("status", help="Version, chat, model, mode, folder", group="Look", while_busy=True)
def status(host: CommandHost, args: str) -> None:
    view = host.engine.view(host.session)
    rows = (
        ("hermes", f"{__version__} (Python {platform.python_version()})"),
        (_("chat"), f"{view.id} {view.title}".strip()),
        (_("model"), view.model),
        (_("profile"), view.profile),
        (_("mode"), view.mode),
        (_("toolsets"), ", ".join(view.toolsets) or _("none")),
        (_("folder"), str(view.cwd)),
        (_("home"), str(host.resolved.home.root)),
        (_("state"), _("working") if view.busy else _("idle")),
    )
    host.show(Output("table", title=_("Status"), columns=("", ""), rows=rows))

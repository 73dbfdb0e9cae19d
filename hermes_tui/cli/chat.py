"""`hermes`, `hermes chat` and `hermes repl`: which front end opens, and with what."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

import click

from hermes_engine.errors import UsageError
from hermes_tui.cli.flags import EVERY, Flags, here, load, resolve, takes
from hermes_tui.cli.shape import Verb
from hermes_tui.printing.streams import dumb, err, is_terminal
from hermes_tui.texts import _

if TYPE_CHECKING:
    from hermes_tui.cli.oneshot import Form


class _Chat(Verb):
    """Words without quotes around them are told how a prompt is given."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.allow_extra_args = True
        rest = super().parse_args(ctx, args)
        if ctx.args:
            words = " ".join([*([ctx.params["query"]] if ctx.params.get("query") else []), *ctx.args])
            raise UsageError(_("a prompt goes in quotes behind -q"), hint=f"hermes chat -q {shlex.quote(words)}")
        return rest


@click.command(cls=_Chat)
@takes(*EVERY)
@click.option("-q", "--query", metavar="PROMPT", help=_("Ask this, print the answer, end; `-` reads standard input."))
@click.option("--json", "as_json", is_flag=True, help=_("Print one JSON object."))
@click.option("--stream-json", is_flag=True, help=_("Print one event a line while it works."))
@click.option("--quiet", is_flag=True, help=_("No progress on standard error."))
def chat(flags: Flags, query: str | None, as_json: bool, stream_json: bool, quiet: bool) -> int:
    """Ask once and print the answer (-q), or open the app."""
    if as_json and stream_json:
        raise UsageError(_("--json and --stream-json cannot be combined"))
    if query is None and is_terminal(sys.stdin):
        if as_json or stream_json or quiet:
            raise UsageError(_("--json, --stream-json and --quiet need a prompt"), hint='hermes chat -q "PROMPT"')
        return open_here(flags)
    from hermes_tui.cli.oneshot import ask_once, read_prompt  # loads the events, which the app loads after its paint

    prompt = read_prompt() if query in (None, "-") else query
    form: Form = "events" if stream_json else "json" if as_json else "text"
    return ask_once(flags, _encodable(prompt or ""), form=form, quiet=quiet)


@click.command(cls=Verb)
@takes(*EVERY)
def repl(flags: Flags) -> int:
    """The plain shell: the same engine and commands without a full-screen app."""
    return _plain_shell(flags)


def open_here(flags: Flags) -> int:
    """`hermes` without a command: the app; one-shot where standard input holds text and no terminal is there."""
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        from hermes_tui.cli.oneshot import ask_once, read_prompt  # as above

        prompt = "" if is_terminal(sys.stdin) else read_prompt()
        if not prompt.strip():
            raise UsageError(
                _("the app needs a terminal, and there is no prompt on standard input"),
                hint='hermes chat -q "PROMPT"',
            )
        return ask_once(flags, prompt)
    if flags.linear:
        return _plain_shell(flags)
    if dumb():
        err(_("hermes: this terminal (TERM) can show no app; here is the plain shell (hermes repl)"))
        return _plain_shell(flags)
    from hermes_tui.app import run_app

    return run_app(
        lambda: load(flags), resume=flags.resume, continue_last=flags.continue_last, mode=flags.mode, cwd=here()
    )


def _plain_shell(flags: Flags) -> int:
    from hermes_tui.repl import run_repl

    cwd = here()
    return run_repl(
        resolve(flags),
        cwd,
        resume=flags.resume,
        continue_last=flags.continue_last,
        mode=flags.mode,
        linear=flags.linear,
    )


def _encodable(text: str) -> str:
    """Bytes of the command line that were no UTF-8 become U+FFFD."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")

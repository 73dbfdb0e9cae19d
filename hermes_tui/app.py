"""The Textual app: one engine, one chat, and what lies over it. Loaded only when there is a terminal to fill.

Paints first; settings, engine and everything heavy come after. Knows screens, not what is on them.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import Binding, BindingType
from textual.filter import NoColor

from hermes_engine.errors import HermesError
from hermes_tui import running
from hermes_tui.desk import Desk, Start, git_branch, warm_up
from hermes_tui.keystrokes import KeyByKey
from hermes_tui.screens.chat import STYLES, ChatScreen
from hermes_tui.screens.hearing import Hearing
from hermes_tui.screens.host import Host
from hermes_tui.screens.leaving import Leaving
from hermes_tui.screens.switching import Switching
from hermes_tui.texts import _
from hermes_tui.widgets.blocks import NoticeBlock
from hermes_tui.widgets.glyphs import choose_glyphs, motion_allowed
from hermes_tui.widgets.highlight import CODE
from hermes_tui.widgets.look import Look
from hermes_tui.widgets.themes import TERMINAL, bundled_themes, unknown_theme

if TYPE_CHECKING:
    from hermes_engine.profiles import Resolved

GRACE_SECONDS = 1.2
BREATH_SECONDS = 1 / 32
"""Between the first picture and everything else: the terminal draws first."""


class HermesApp(KeyByKey[int]):
    """See the module's docstring."""

    TITLE = "Hermes"
    CSS_PATH = STYLES
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f1", "keys", _("Keys"), show=False, id="app.keys"),
        Binding("alt+1,f2", "screen('chat')", _("Chat"), show=False, id="app.chat", priority=True),
        Binding("alt+2,f3", "screen('agents')", _("Agents"), show=False, id="app.agents", priority=True),
        Binding("1", "screen('chat')", _("Chat"), show=False, id="app.chat_plain"),
        Binding("2", "screen('agents')", _("Agents"), show=False, id="app.agents_plain"),
        Binding("alt+3,f4", "screen('kanban')", _("Board"), show=False, id="app.kanban", priority=True),
        Binding("3", "screen('kanban')", _("Board"), show=False, id="app.kanban_plain"),
        Binding("alt+4,f5", "screen('batch')", _("Batch runs"), show=False, id="app.batch", priority=True),
        Binding("4", "screen('batch')", _("Batch runs"), show=False, id="app.batch_plain"),
        Binding("ctrl+p", "palette", _("Everything by name"), show=False, id="app.palette"),
        Binding("ctrl+c", "interrupt", _("Stop, clear, quit"), show=False, id="app.interrupt"),
        Binding("ctrl+q,ctrl+d", "quit_or_ask", _("Quit"), show=False, id="app.quit"),
        Binding("ctrl+l", "redraw", _("Draw again"), show=False, id="app.redraw"),
        Binding("ctrl+z", "suspend_process", _("To the shell"), show=False, id="app.suspend"),
    ]

    def __init__(self, desk: Desk, *, theme: str = TERMINAL, driver: Any = None) -> None:
        self.desk = desk
        self._themes = bundled_themes()
        self._glyphs, self._motion = choose_glyphs(), motion_allowed()
        name = theme if theme in self._themes else TERMINAL
        self.look = Look.of(self._themes[name], glyphs=self._glyphs, motion=self._motion)
        super().__init__(driver_class=driver)
        for item in self._themes.values():
            self.register_theme(item)
        self._begin_in(name)
        self.animation_level = "none"
        self.failure: HermesError | None = None
        self.host = Host(self, desk)
        self.chat = self.host.chat = ChatScreen(desk, self.host)
        self.leaving = Leaving(self, desk, self.chat)
        self.switching = Switching(self, self.host, lambda: self.hearing.deliver())
        self.hearing = Hearing(self, desk, self.chat, self.switching, self.leaving.done)

    def _begin_in(self, theme: str) -> None:
        """Sets the theme before there is anything to draw; setting it the public way would read all CSS twice."""
        self.set_reactive(HermesApp.theme, theme)
        dark = self._themes[theme].dark
        self.update_classes({"-dark-mode": dark, "-light-mode": not dark, f"-theme-{theme}": True}, update=False)
        self._refresh_truecolor_filter(self.ansi_theme)
        if self.no_color:  # the toolkit's own way makes black of the terminal's colours
            self._filters = [NoColor()]
        self.stylesheet.set_variables(self.get_css_variables())

    def get_default_screen(self) -> ChatScreen:
        """The chat."""
        return self.chat

    def get_css_variables(self) -> dict[str, str]:
        return {**super().get_css_variables(), **self.look.variables()}

    def watch_theme(self, name: str) -> None:
        """Another theme: another look."""
        self.look = Look.of(self._themes[name], glyphs=self._glyphs, motion=self._motion)
        if self.is_running and self.chat.is_mounted:
            self.call_after_refresh(self.chat.relook)
            self.call_after_refresh(self.switching.recolour)

    # Starting

    def on_ready(self) -> None:
        """The first picture is out: now everything else."""
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            with suppress(NotImplementedError, RuntimeError, ValueError):
                asyncio.get_running_loop().add_signal_handler(number, self.leaving.signalled, number)
        self.app_resume_signal.subscribe(self, lambda _: self.action_redraw())
        self.set_timer(BREATH_SECONDS, lambda: self.run_worker(self._boot(), exit_on_error=True))

    def on_unmount(self) -> None:
        CODE.stop()

    async def _boot(self) -> None:
        desk = self.desk
        try:
            resolved = await desk.off_loop(desk.load)
            self._apply(resolved)
            if not running.configured(resolved):
                await self.set_up()
                return
            await self._open(resolved)
        except HermesError as error:
            self.failure = error
            self.exit(return_code=error.exit_code)

    async def set_up(self) -> None:
        """The first-run card; a chat opens when it ends well."""
        from hermes_tui.screens.overlays.first_run import choose_model

        def again() -> None:
            self.run_worker(self.set_up(), group="set up", exclusive=True, exit_on_error=False)

        if (how := await choose_model(self, self.desk)) == "ready":
            await self._open(await self.desk.off_loop(self.desk.load))
        else:
            self.chat.sending.without_model(again)
            self.leaving.closed_by(how)

    def _apply(self, resolved: Resolved) -> None:
        """Takes over what the settings say of the interface."""
        ui = resolved.settings.ui
        self._motion = self._motion and ui.motion
        self.look = Look.of(self._themes[self.theme], glyphs=self._glyphs, motion=self._motion)
        if ui.theme in self._themes and ui.theme != self.theme:
            self.theme = ui.theme
        self.chat.side_mode = ui.sidebar
        if ui.mouse != "on" and (set_mouse := getattr(self._driver, "set_mouse", None)):
            set_mouse(ui.mouse)
        self.chat.fit()

    async def _open(self, resolved: Resolved) -> None:
        desk = self.desk
        view = await desk.off_loop(lambda: desk.open_engine(resolved))
        desk.show(view)
        self.hearing.begin()
        CODE.start(desk.pool, self.hearing.recolour)
        await self.chat.opened(view)
        for line in [*resolved.warnings, *unknown_theme(resolved.settings.ui.theme)]:
            self.chat.say(NoticeBlock(line, "warning"))
        desk.branch = await desk.off_loop(lambda: git_branch(desk.cwd))
        await self.chat.sending.load_history()
        self.run_worker(self.switching.ask_to_go_on(), exit_on_error=False)
        self.chat.refresh_facts()
        desk.pool.submit(warm_up)
        # what stands now stays: a collector that walks it again and again would be felt as stumbling keys
        gc.freeze()
        gc.set_threshold(20_000, 20, 50)

    # Keys

    def action_screen(self, name: str, goal: str = "") -> None:
        """Goes to a screen, see `Switching.go`."""
        self.switching.go(name, goal)

    async def action_agent(self, agent: str) -> None:
        """Shows one agent."""
        await self.switching.show_agent(agent)

    def action_keys(self) -> None:
        """What the keys do."""
        self.host.open_screen("keys")

    def action_palette(self) -> None:
        """Everything by name."""
        self.host.open_screen("palette")

    def action_redraw(self) -> None:
        """Draws everything again."""
        self.refresh(repaint=True, layout=True)

    def action_interrupt(self) -> None:
        """Stops the turn, else clears the draft; again within three seconds: leaves."""
        self.leaving.interrupt()

    def action_quit_or_ask(self) -> None:
        """Leaves, after a question while something runs."""
        self.leaving.leave_or_ask()

    def _fatal_error(self) -> None:
        """An error nobody expected ends the app: the terminal is given back, the traceback goes to a file."""
        from hermes_tui.screens.faults import write_fault

        error = sys.exc_info()[1] or self._exception
        where = write_fault(self.desk.resolved, error) if error is not None else ""
        self.failure = HermesError(_("an unexpected error ended the app: {error}").format(error=error), hint=str(where))
        self._close_messages_no_wait()


def run_app(
    resolved: Resolved | Callable[[], Resolved],
    *,
    resume: str | None = None,
    continue_last: bool = False,
    mode: str | None = None,
    cwd: Path | None = None,
) -> int:
    """Fills the terminal until the person leaves. Ends the process itself, since a thread may hang in a request.

    Args: `resolved` is the settings or what reads them (then the first picture does not wait); others: `desk.Start`.

    Raises:
        HermesError: the settings cannot be used, or an unexpected error ended the app.
    """
    from hermes_tui.driver import HermesDriver
    from hermes_tui.printing import streams

    sys.setswitchinterval(0.0005)
    desk = Desk(Start(running.loader_of(resolved), cwd or Path.cwd(), resume, continue_last, mode))
    app = HermesApp(desk, theme=running.peeked_theme(), driver=HermesDriver)
    code = app.run()
    if desk.engine is None and app.failure is not None:
        raise app.failure
    again = desk.resumable
    process = desk.close(GRACE_SECONDS)
    if again and code == 0:
        streams.err(_("To go on with this chat: hermes --resume {id}").format(id=again))
    if process:
        streams.err(_("What was at work goes on in process {process} · hermes tasks list").format(process=process))
    if app.failure is not None:
        streams.error(app.failure.line)
    running.end_process(code if code is not None else app.return_code or 1)

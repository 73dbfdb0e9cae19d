"""The first-run card: what was found on this machine, another address, the embedded models. Nothing is sent before a
choice; a choice is tried with one small call and kept only when that works.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, Static

from hermes_engine.settings.local_model import installed
from hermes_tui.screens.overlays import setup
from hermes_tui.screens.overlays.card import Card, Choice
from hermes_tui.screens.overlays.picker import Item, Picker
from hermes_tui.screens.overlays.setup import Place
from hermes_tui.texts import _
from hermes_tui.widgets.look import look_of

if TYPE_CHECKING:
    from textual.app import App
    from textual.widget import Widget

    from hermes_engine.profiles import Resolved
    from hermes_tui.desk import Desk


class AddressForm(Card):
    """Asks for an address, a key and a model; fills `place`. Returns "ok" or ""."""

    AUTO_FOCUS = "#address"

    def __init__(self, before: Place | None = None, fault: str = "") -> None:
        """Args:
        before: what was typed the last time, to be mended.
        fault: why that did not work.
        """
        super().__init__(_("Another OpenAI-style server"), [], [], _("Enter goes on · Esc closes"))
        self._before, self._fault = before or Place("other", "", ""), fault
        self.place: Place | None = None

    def compose(self) -> ComposeResult:
        with Vertical(id="card"):
            yield Static(Text(self._title), id="title", markup=False)
            for name, words, value in (
                ("address", _("Address, up to /v1"), self._before.base_url),
                ("key", _("Key, empty for none"), self._before.key),
                ("model", _("Model, empty for the first one it lists"), self._before.model),
            ):
                yield Static(Text(words), classes="label", markup=False)
                like = "http://127.0.0.1:8000/v1" if name == "address" else ""
                typed = Input(value, like, id=name, classes="field", password=name == "key", compact=True)
                typed.cursor_blink = False
                yield typed
            yield Static(_fault(self, self._fault) if self._fault else Text(self._note), classes="note", markup=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """The next field, or done."""
        order = ["address", "key", "model"]
        if event.input.id != "model":
            self.query_one(f"#{order[order.index(event.input.id or 'key') + 1]}", Input).focus()
            return
        values = {name: self.query_one(f"#{name}", Input).value.strip() for name in order}
        if not values["address"]:
            self.query_one("#address", Input).focus()
            return
        address = setup.spelled_out(values["address"])
        self.place = Place("other", address, address, values["model"], values["key"])
        self.dismiss("ok")


class FirstRun(Card):
    """Returns "ready" when a model answered and was kept, "interrupt" or "quit" after Ctrl+C or Ctrl+D, else ""."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "end('interrupt')", _("Close; again: quit"), show=False, id="card.away", priority=True),
        Binding("ctrl+d", "end('quit')", _("Quit"), show=False, id="card.quit", priority=True),
    ]

    def __init__(self, desk: Desk, resolved: Resolved, env: Mapping[str, str]) -> None:
        self._desk, self._resolved, self._env = desk, resolved, env
        self._places: dict[str, Place] = {place.id: place for place in setup.keys_in(env)}
        super().__init__(
            _("No model is set up yet. Pick one; /model changes it later."),
            [],
            self._choices(),
            _("Nothing is sent anywhere until you choose."),
        )
        self._trying = False

    def on_mount(self) -> None:
        """Looks for servers on this machine."""
        self.run_worker(self._look(), exit_on_error=False)

    def _choices(self) -> list[Choice]:
        found = [Choice(place.id, place.name, place.told, _("found")) for place in self._places.values()]
        embedded = [Choice("demo", _("Demo model"), _("works offline, costs nothing"))]
        if installed() is not None:
            embedded.append(Choice("local", _("Local model"), _("small but real, works offline, costs nothing")))
        return [
            *found,
            Choice("other", _("Another OpenAI-style server"), _("address and key…")),
            *embedded,
        ]

    async def _look(self) -> None:
        for place in await setup.find_servers():
            self._places[place.id] = place
            if not self._trying:
                self.choices.show(self._choices())

    def take(self, chosen: str) -> None:
        """Tries the choice."""
        if not self._trying:
            self._trying = True
            self.run_worker(self._take(chosen), exit_on_error=False)

    async def _take(self, chosen: str) -> None:
        try:
            if await self._try(chosen):
                self.dismiss("ready")
        finally:
            self._trying = False

    async def _try(self, chosen: str) -> bool:
        if chosen in ("demo", "local"):
            await self._desk.off_loop(lambda: setup.keep_model(self._resolved, chosen))
            return True
        found, place, fault = self._places.get(chosen), None, ""
        if found is None:
            place = await typed_place(self.app, self._desk, self._resolved, self._tell)
        else:
            if key := setup.key_for(found, self._env):
                self._tell(_("Asking {name} for its models…").format(name=found.name))
                models, fault = await setup.list_models(found.base_url, key)
                found = found.with_models(models)
            if not fault:
                place, fault = await answering(self.app, self._desk, self._resolved, found, self._tell)
        if place is None:
            self.query_one(".note", Static).update(_fault(self, fault) if fault else Text(self._note))
            return False
        await self._desk.off_loop(lambda: setup.keep_place(self._resolved, place))
        return True

    def action_end(self, how: str) -> None:
        """Closes the card by a key that leads out of the app."""
        self.dismiss(how)

    def _tell(self, words: str) -> None:
        self.query_one(".note", Static).update(Text(words))


def _fault(widget: Widget, words: str) -> Text:
    """Why something did not work, as the chat says it."""
    look = look_of(widget)
    return Text.assemble((f"{look.glyphs.bad} ", look.bad), (words, look.text))


async def typed_place(app: App[Any], desk: Desk, resolved: Resolved, tell: Callable[[str], None]) -> Place | None:
    """A server the person types, with a model that has answered. What does not work comes back in the form, as it was
    typed and with the reason, until it does or they give up (None). `tell` hears what goes on meanwhile.
    """
    typed: Place | None = None
    fault = ""
    while True:
        form = AddressForm(typed, fault)
        await app.push_screen_wait(form)
        if form.place is None:
            return None
        typed = place = form.place
        if not typed.model:
            tell(_("Asking {name} for its models…").format(name=typed.name))
            typed, models, fault = await setup.found_at(typed)
            if not models:
                fault = fault or _("{name} lists no model; name one").format(name=typed.name)
                continue
            place = typed.with_models(models)
        answered, fault = await answering(app, desk, resolved, place, tell)
        if answered is not None:
            return answered


async def answering(
    app: App[Any], desk: Desk, resolved: Resolved, place: Place, tell: Callable[[str], None]
) -> tuple[Place | None, str]:
    """The place with a model that has answered, chosen by the person where there are several; or None and why none
    did, "" when the person gave up. `tell` hears what goes on meanwhile.
    """
    if len(place.models) > 1:
        items = [Item(name, name) for name in place.models]
        model = await app.push_screen_wait(Picker(_("Which model?"), items))
        if model is None:
            return None, ""
        place = place.with_model(model)
    tell(_("Asking {name}…").format(name=place.name))
    fault = await desk.off_loop(lambda: asyncio.run(setup.try_place(resolved, place)))
    return (None, fault) if fault else (place, "")


async def choose_model(app: App[Any], desk: Desk) -> str:
    """Shows the card; returns what it does."""
    resolved = desk.resolved
    if resolved is None:
        return ""
    return await app.push_screen_wait(FirstRun(desk, resolved, resolved.env))

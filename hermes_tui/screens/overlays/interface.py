"""Changes how the app behaves on the screen, at once and for the next start: mouse and sidebar."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes_tui.commands.host import Output
from hermes_tui.commands.interface import choices_of
from hermes_tui.screens.overlays.picker import Item, Picker
from hermes_tui.texts import _

if TYPE_CHECKING:
    from textual.app import App

    from hermes_tui.screens.host import Host


async def change(app: App[Any], host: Host, name: str, choice: str) -> None:
    """Puts a choice for one of these into effect and keeps it; "" asks for one. Raises HermesError."""
    choices = choices_of(name)
    if not choice:
        items = [Item(word, word, meaning) for word, meaning in choices.items()]
        picker = Picker(_("Mouse") if name == "mouse" else _("Sidebar"), items)
        taken = await app.push_screen_wait(picker)
        if taken is None:
            return
        choice = taken
    if name == "sidebar":
        host.chat.side_mode = choice
        host.chat.fit()
    elif set_mouse := getattr(app._driver, "set_mouse", None):
        set_mouse(choice)
    await host.desk.off_loop(lambda: _keep(host, name, choice))
    host.show(Output("text", f"{choice}: {choices[choice]}"))


def _keep(host: Host, name: str, choice: str) -> None:
    from hermes_engine.settings_edit import set_value

    set_value(host.resolved.home.ensure().config, f"ui.{name}", choice)

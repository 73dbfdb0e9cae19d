"""The floor of the app: a Textual app with the same kinds of widgets and nothing behind them.

`python -m bench.bare_app` paints header, a scrolled sheet, a Markdown widget, a text area and a footer, and takes keys.
"""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Markdown, Static, TextArea


class Sheet(ScrollView):
    """Lines by the line API, as a long transcript is drawn."""

    def on_mount(self) -> None:
        """Has a screen's worth of lines."""
        self.virtual_size = Size(80, 20)

    def render_line(self, y: int) -> Strip:
        """A blank line."""
        return Strip.blank(self.size.width)


class Bare(App[None]):
    """Header, sheet, live answer, prompt and footer."""

    CSS = """
    Sheet { height: 1fr; }
    Markdown { height: auto; }
    TextArea { height: 3; border: none; }
    #header, #footer { height: 1; }
    """
    AUTO_FOCUS = "TextArea"

    def compose(self) -> ComposeResult:
        """The widgets, top to bottom."""
        yield Static(" Bare", id="header")
        yield Sheet()
        yield Markdown("")
        yield TextArea()
        yield Static("bare-is-ready", id="footer")


if __name__ == "__main__":
    Bare().run()

"""The form that starts a run. Checks nothing: who starts it does, and the form comes back with its words."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Input, Static

from hermes_engine.paths import expanded
from hermes_tui.screens.steady import SteadyModal
from hermes_tui.texts import _

STYLES = [Path(__file__).parents[1] / "overlays" / "overlays.tcss", Path(__file__).with_name("batch.tcss")]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What stands in the form, as it is shown there."""

    file: str = ""
    name: str = ""
    model: str = ""
    workers: str = "4"
    samples: str = ""
    distribution: str = "default"
    resume: str = "no"
    flags: str = ""

    def values(self, folder: Path, runs: Path) -> dict[str, Any]:
        """The options; files are seen from `folder`, the run is under `runs`. Raises UsageError for wrong flags."""
        from hermes_tui.commands.batch import run_name
        from hermes_tui.commands.batch_flags import values_of

        resume = self.resume.strip().lower() in ("yes", "y", "true", "1", _("yes"))
        file = folder / expanded(self.file.strip().strip("\"'")) if self.file.strip() else None
        given = {
            "run_name": self.name.strip() or (run_name(file) if file is not None else ""),
            "dataset_file": file,
            "model": self.model.strip() or None,
            "num_workers": self.workers.strip() or None,
            "max_samples": self.samples.strip() or None,
            "distribution": self.distribution.strip() or None,
            "output_dir": runs,
            "resume": resume,
        }
        if resume:  # what stands in the form unasked is no wish to change the run
            plain = Wanted()
            for name, field in (("num_workers", "workers"), ("distribution", "distribution")):
                if getattr(self, field) == getattr(plain, field):
                    given[name] = None
        return {name: value for name, value in given.items() if value is not None} | values_of(self.flags, folder)


class RunForm(SteadyModal[Wanted | None]):
    """Returns what stands there, None when it was closed."""

    CSS_PATH: ClassVar[Any] = STYLES
    AUTO_FOCUS = "Input"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c", "close", _("Close"), show=False, id="run.close", priority=True),
        Binding("down", "app.focus_next", _("Next field"), show=False, id="run.next", priority=True),
        Binding("up", "app.focus_previous", _("Field before"), show=False, id="run.previous", priority=True),
    ]

    def __init__(self, before: Wanted, fault: str = "") -> None:
        super().__init__()
        self._before, self._fault = before, fault

    def compose(self) -> ComposeResult:
        labels = {
            "file": (_("File"), _("one JSON object with `prompt` a line")),
            "name": (_("Name"), _("made of the file")),
            "model": (_("Model"), _("that of the settings")),
            "workers": (_("Workers"), _("rows at once")),
            "samples": (_("First rows"), _("all")),
            "distribution": (_("Toolsets"), _("default, balanced, terminal_only, …")),
            "resume": (_("Resume"), _("yes goes on with a run of this name")),
            "flags": (_("Flags"), _("more, as of hermes batch run: --max_turns 20 …")),
        }
        with VerticalScroll(id="card", can_focus=False):
            yield Static(Text(_("Run every prompt of a file")), id="title", markup=False)
            for name, (label, hint) in labels.items():
                made = Input(getattr(self._before, name), id=f"{name}-field", placeholder=hint, compact=True)
                made.cursor_blink = False
                with Horizontal(classes="field"):
                    yield Static(Text(label), classes="label", markup=False)
                    yield made
            words = self._fault or _("Enter starts it · Tab, ↑↓ another field · Esc closes")
            yield Static(Text(words), classes="fault" if self._fault else "note", markup=False)

    def on_input_submitted(self) -> None:
        """Enter."""
        fields = ("file", "name", "model", "workers", "samples", "distribution", "resume", "flags")
        self.dismiss(Wanted(*(self.query_one(f"#{name}-field", Input).value for name in fields)))

    def action_close(self) -> None:
        """Closes it."""
        self.dismiss(None)

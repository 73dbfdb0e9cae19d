"""The transcript: `view` puts blocks where they belong, `transcript` adds keys, mouse and selection."""

from hermes_tui.widgets.transcript.transcript import Transcript

__all__ = ["Transcript"]

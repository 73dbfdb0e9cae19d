"""Several hearers of the same events as one."""

from __future__ import annotations

from typing import Any

from hermes_engine.events import Sink


def tee(*sinks: Sink | None) -> Sink:
    """One sink that hands each event to several; what one raises does not keep it from the others."""
    present = [sink for sink in sinks if sink is not None]

    def send(event: Any) -> None:
        fault: Exception | None = None
        for sink in present:
            try:
                sink(event)
            except Exception as error:
                fault = error
        if fault is not None:
            raise fault

    return send

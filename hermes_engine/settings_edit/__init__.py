"""Changing settings files by command: `edit_config`, `set_value`, `change_toolsets`."""

from hermes_engine.settings_edit.file import Change, edit_config, edited_text, locked
from hermes_engine.settings_edit.keys import checked_key, set_value, typed_value
from hermes_engine.settings_edit.toolsets import ToolsetChange, change_toolsets

__all__ = [
    "Change",
    "ToolsetChange",
    "change_toolsets",
    "checked_key",
    "edit_config",
    "edited_text",
    "locked",
    "set_value",
    "typed_value",
]

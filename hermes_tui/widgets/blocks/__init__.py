"""What the transcript is a list of: values that draw themselves as rows. No block is a widget."""

from hermes_tui.widgets.blocks.answer import AnswerBlock
from hermes_tui.widgets.blocks.base import Block
from hermes_tui.widgets.blocks.notice import NoticeBlock, OutputBlock, WaitBlock
from hermes_tui.widgets.blocks.request import Option, RequestBlock
from hermes_tui.widgets.blocks.result import ResultBlock
from hermes_tui.widgets.blocks.thought import ThoughtBlock
from hermes_tui.widgets.blocks.tool import ToolBlock
from hermes_tui.widgets.blocks.user import UserBlock
from hermes_tui.widgets.blocks.welcome import WelcomeBlock

__all__ = [
    "AnswerBlock",
    "Block",
    "NoticeBlock",
    "Option",
    "OutputBlock",
    "RequestBlock",
    "ResultBlock",
    "ThoughtBlock",
    "ToolBlock",
    "UserBlock",
    "WaitBlock",
    "WelcomeBlock",
]

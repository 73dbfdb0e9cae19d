"""Markdown as rows: `splitting` cuts a growing source into closed pieces, `drawing` turns a piece into rows."""

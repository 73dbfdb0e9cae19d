"""Batch runs: many prompts from a file, each worked by an agent of its own, every result kept."""

"""Measures the program as whole processes: what a prompt, a key, a streamed answer and a start cost.

Speed is told as a ratio to a floor or a peer measured in the same breath, in processor time; clocks of busy
machines say little. Nothing here is part of the program, and no test depends on its figures.
"""

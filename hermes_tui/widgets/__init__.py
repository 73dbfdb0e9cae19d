"""One visible thing each. Widgets are given plain values and send messages upwards; they know no engine, no
presenter and no screen.
"""

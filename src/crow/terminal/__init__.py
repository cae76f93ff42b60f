"""The terminal that people stay in: a face that knows events and questions, not the loop.

What is final is written once, into the terminal's own scrollback; below it stands a small live area
that is drawn again and again: the end of the answer, the tools at work, the editor, the status.
"""

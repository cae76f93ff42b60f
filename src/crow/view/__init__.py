"""A page that shows what happened in sessions: on loopback (``crow view``), or as one file.

`document` makes one plain structure of a session's records, `page/` shows it, `server` serves both
to one browser, `cli` and `export` are the commands.
"""

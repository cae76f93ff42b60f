"""Many sessions on many machines: a table of jobs, workers that lease them, and PostgreSQL alone.

A job is one session that runs until it stops. `board` is the table and the judge of who is alive,
`queue` the port that an existing engine fills (`engine`), `worker` leases and runs, `cli` is
``crow fleet``.
"""

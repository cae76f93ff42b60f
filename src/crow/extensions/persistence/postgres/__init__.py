"""Sessions in a PostgreSQL database, shared by any number of machines (``crow-acp[postgres]``)."""

from crow.extensions.persistence.postgres.database import Postgres

__all__ = ["Postgres"]

"""A filter of jobs, as a condition of SQL."""

from __future__ import annotations

from typing import Any

from crow.core.support.frozen import frozen


@frozen
class JobFilter:
    """A choice of jobs: of a batch, with a label, of an id's first letters; all without any."""

    batch: str = ""
    label: str = ""
    job: str = ""
    state: str = ""

    @property
    def sql(self) -> str:
        """The condition; its values are `values`."""
        name, is_pair, _ = self.label.partition("=")
        labelled = "labels ->> %(name)s = %(text)s" if is_pair else "labels ? %(name)s"
        parts = (
            self.batch and "batch = %(batch)s",
            name and labelled,
            self.job and "starts_with(id, %(job)s)",
            self.state and "state = %(state)s",
        )
        return " AND ".join(filter(None, parts)) or "true"

    @property
    def values(self) -> dict[str, str]:
        """The values of `sql`."""
        name, _, text = self.label.partition("=")
        return {
            "batch": self.batch,
            "name": name,
            "text": text,
            "job": self.job,
            "state": self.state,
        }


def table(value: Any) -> dict[str, Any]:
    """A column of JSON that holds an object, or nothing."""
    return value or {}

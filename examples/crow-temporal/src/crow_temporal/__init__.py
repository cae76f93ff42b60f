"""The queue of a fleet in Temporal: an offer is a workflow, a lease the activity that it starts."""

from crow_temporal.queue import TemporalQueue
from crow_temporal.workflow import RunSession

__all__ = ["RunSession", "TemporalQueue"]

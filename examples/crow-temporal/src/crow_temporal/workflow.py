"""What Temporal keeps of a session: that it may begin, and how it came to an end."""

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy

ACTIVITY = "run_session"
BEAT = 5.0
"""Seconds between two heartbeats."""


@workflow.defn
class RunSession:
    """One epoch of a session: an activity that lasts until it stops."""

    @workflow.run
    async def run(self, job: str, epoch: int) -> str:
        """How its offer came to an end: ``done`` or ``failed``."""
        return await workflow.execute_activity(
            ACTIVITY,
            args=[job, epoch],
            result_type=str,
            start_to_close_timeout=timedelta(days=30),
            heartbeat_timeout=timedelta(seconds=6 * BEAT),
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
            retry_policy=RetryPolicy(maximum_interval=timedelta(minutes=1)),
        )

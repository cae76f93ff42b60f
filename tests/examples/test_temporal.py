"""crow-temporal, a fleet whose queue is Temporal: its activity and its workflow, run by Temporal's own library."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("temporalio")

from crow_temporal import RunSession, TemporalQueue
from crow_temporal.workflow import ACTIVITY
from temporalio.client import WorkflowHistory
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.testing import ActivityEnvironment
from temporalio.worker import Replayer
from tests.fleet.conftest import Machine, address
from tests.postgres import postgres

from crow.core.hooks.context import Context
from crow.fleet.board import Board
from crow.fleet.job_filter import JobFilter
from crow.fleet.queue import VARIABLE, Offer, chosen_queue
from crow.fleet.task import FleetError, Task
from crow.testing import call

__all__ = ["address", "postgres"]
pytestmark = pytest.mark.slow

RUN = [call("Bash", command="true"), call("Bash", command="true"), "done"]


class Service:
    """Temporal as far as it is no library: it starts the activity of each workflow, somewhere."""

    def __init__(self) -> None:
        self.machines: list[TemporalQueue] = []
        self.tasks: dict[str, asyncio.Task[str]] = {}
        self.activities: dict[str, ActivityEnvironment] = {}
        self.beats: list[int] = []

    async def start_workflow(self, _: Any, *, args: tuple[str, int], **others: Any) -> None:
        name = others["id"]
        if name in self.tasks and not self.tasks[name].done():
            raise WorkflowAlreadyStartedError(name, "RunSession")
        self.begin(self.machines[0], name, *args)

    def begin(self, machine: TemporalQueue, name: str, job: str, epoch: int) -> None:
        """Start an activity on a machine."""
        activity = self.activities[name] = ActivityEnvironment()
        activity.on_heartbeat = self.beats.append
        self.tasks[name] = asyncio.create_task(activity.run(machine.run_session, job, epoch))


class Queue(TemporalQueue):
    """One that polls no server."""

    def __init__(self, service: Service) -> None:
        super().__init__(4, service)  # type: ignore[arg-type]
        service.machines.append(self)

    async def listen(
        self, wake: Callable[[], Awaitable[None]], cancel: Callable[[str], Awaitable[None]]
    ) -> None:
        self.attend(wake, cancel)
        await asyncio.Event().wait()


async def test_a_session_runs_in_an_activity_until_it_stops(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crow_temporal.queue.BEAT", 0.05)
    service = Service()
    async with Board(address, queue=Queue(service)) as board:
        machine = Machine(board, tmp_path, lambda _: RUN)
        machine.hooks.append(Slow(service))
        running = asyncio.create_task(machine.run())
        await board.submit("b", [Task("edit", key="k")])
        assert await running == ["done"]
        (workflow,) = service.tasks
        assert await service.tasks[workflow] == "done"
        assert service.beats == sorted(service.beats)
        assert service.beats[0] == 0
        assert service.beats[-1] > 3  # records that are stored


async def test_of_two_activities_of_one_session_one_runs_it(address: str, tmp_path: Path) -> None:
    """A heartbeat was missed, and Temporal has started it once more, elsewhere."""
    service = Service()
    here, there = Queue(service), Queue(service)
    async with Board(address, queue=here) as board, Board(address, queue=there) as other:
        machines = [
            Machine(board, tmp_path / "here", lambda _: RUN),
            Machine(other, tmp_path / "there", lambda _: RUN),
        ]
        working = asyncio.gather(*(machine.run() for machine in machines))
        await board.submit("b", [Task("edit", key="k")])
        (row,) = await board.jobs(JobFilter())
        service.begin(there, "again", row["id"], 0)
        assert sorted(await working) == [[], ["done"]]
        assert {await task for task in service.tasks.values()} == {"done"}
        assert (await board.jobs(JobFilter()))[0]["epoch"] == 1


async def test_an_answer_makes_a_session_go_on_in_a_workflow_of_its_own(
    address: str, tmp_path: Path
) -> None:
    service = Service()
    async with Board(address, queue=Queue(service)) as board:
        await board.submit("b", [Task("edit", key="k")])
        machine = Machine(board, tmp_path, lambda _: RUN)
        machine.asks = True
        assert await machine.run() == ["waiting"]
        assert [await task for task in service.tasks.values()] == ["done"]
        (row,) = await board.jobs(JobFilter())
        assert await board.answer(row["id"], "allow_always")
        machine = Machine(board, tmp_path, lambda _: RUN[1:])
        assert await machine.run() == ["done"]
        assert [*service.tasks] == [f"crow-{row['id']}-{epoch}" for epoch in (0, 1)]


async def test_who_cancels_the_workflow_cancels_the_session(address: str, tmp_path: Path) -> None:
    service = Service()
    async with Board(address, lease=1, queue=Queue(service)) as board:
        await board.submit("b", [Task("edit", key="k")])
        begun = asyncio.Event()
        machine = Machine(board, tmp_path, lambda _: [call("Bash", command="sleep 60")])
        machine.hooks.append(Telling(begun))
        running = asyncio.create_task(machine.run())
        await begun.wait()
        ((workflow, activity),) = service.activities.items()
        activity.cancel()
        with pytest.raises(asyncio.CancelledError):
            await service.tasks[workflow]
        assert await running == ["cancelled"]


class Telling:
    """Says when a call begins."""

    def __init__(self, begun: asyncio.Event) -> None:
        self._begun = begun

    def before_tool(self, ctx: Context) -> None:
        self._begun.set()


class Slow:
    """Goes on when a heartbeat has told how far its session is."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def after_turn(self, ctx: Context) -> None:
        while self._service.beats[-1] <= 3:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_no_server_is_said_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:9")
    with pytest.raises(FleetError, match=re.escape("cannot be reached at 127.0.0.1:9")):
        await TemporalQueue(1).offer([Offer("job", 0)])


def test_the_environment_names_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "crow_temporal:TemporalQueue")
    chosen = chosen_queue(7)
    assert isinstance(chosen, TemporalQueue)
    assert chosen.places == 7
    monkeypatch.setenv(VARIABLE, "crow_temporal:Nothing")
    with pytest.raises(FleetError, match="crow_temporal:Nothing is no engine of a queue"):
        chosen_queue(7)


def event(number: int, kind: str, **fields: Any) -> dict[str, Any]:
    """An event of a workflow's history, as Temporal's own tools write it."""
    name = "".join(word.title() for word in kind.split("_"))
    attributes = f"{name[0].lower()}{name[1:]}EventAttributes"
    return {
        "eventId": str(number),
        "eventTime": "2026-01-01T00:00:00Z",
        "eventType": f"EVENT_TYPE_{kind.upper()}",
        attributes: fields,
    }


def payloads(*values: Any) -> dict[str, Any]:
    def coded(text: str) -> str:
        return base64.b64encode(text.encode()).decode()

    encoding = {"encoding": coded("json/plain")}
    return {"payloads": [{"metadata": encoding, "data": coded(json.dumps(v))} for v in values]}


HISTORY = [
    event(
        1,
        "workflow_execution_started",
        workflowType={"name": "RunSession"},
        taskQueue={"name": "crow-fleet"},
        input=payloads("job", 3),
        originalExecutionRunId="run",
        firstExecutionRunId="run",
        workflowTaskTimeout="10s",
    ),
    event(2, "workflow_task_scheduled"),
    event(3, "workflow_task_started", scheduledEventId="2"),
    event(4, "workflow_task_completed", scheduledEventId="2", startedEventId="3"),
    event(
        5,
        "activity_task_scheduled",
        activityId="1",
        activityType={"name": ACTIVITY},
        taskQueue={"name": "crow-fleet"},
        input=payloads("job", 3),
        workflowTaskCompletedEventId="4",
    ),
    event(6, "activity_task_started", scheduledEventId="5"),
    event(
        7,
        "activity_task_completed",
        scheduledEventId="5",
        startedEventId="6",
        result=payloads("done"),
    ),
    event(8, "workflow_task_scheduled"),
    event(9, "workflow_task_started", scheduledEventId="8"),
    event(10, "workflow_task_completed", scheduledEventId="8", startedEventId="9"),
    event(
        11,
        "workflow_execution_completed",
        result=payloads("done"),
        workflowTaskCompletedEventId="10",
    ),
]


TIMER = event(
    5, "timer_started", timerId="1", startToFireTimeout="1s", workflowTaskCompletedEventId="4"
)


@pytest.mark.parametrize("is_so", [True, False])
async def test_the_workflow_starts_the_activity_as_temporal_replays_it(is_so: bool) -> None:
    """In the sandbox of the library, against the history of a session that ended."""
    events = HISTORY if is_so else [*HISTORY[:4], TIMER]
    history = WorkflowHistory.from_json("crow-job-3", {"events": events})
    replayed = await Replayer(workflows=[RunSession]).replay_workflow(
        history, raise_on_replay_failure=False
    )
    assert (replayed.replay_failure is None) == is_so

"""What a running job tells: events as values, and the log that keeps them."""

from penstock.telemetry.event_log import EventLog, read_events
from penstock.telemetry.events import (
    Batch,
    CellBatch,
    Event,
    Failure,
    PlanDecision,
    Restart,
    Start,
    Stop,
)
from penstock.telemetry.follow import EventFollower
from penstock.telemetry.operator_batch import OperatorBatch

__all__ = [
    "Batch",
    "CellBatch",
    "Event",
    "EventFollower",
    "EventLog",
    "Failure",
    "OperatorBatch",
    "PlanDecision",
    "Restart",
    "Start",
    "Stop",
    "read_events",
]

"""What a running job tells: events as values, and the log that keeps them."""

from penstock.telemetry.batch_news import BatchNews
from penstock.telemetry.event_log import EventLog, read_events
from penstock.telemetry.events import (
    Batch,
    CellBatch,
    Event,
    Failure,
    Order,
    OverloadChange,
    PlanDecision,
    Restart,
    Start,
    Stop,
    Warned,
    Wave,
)
from penstock.telemetry.follow import EventFollower
from penstock.telemetry.operator_batch import OperatorBatch

__all__ = [
    "Batch",
    "BatchNews",
    "CellBatch",
    "Event",
    "EventFollower",
    "EventLog",
    "Failure",
    "OperatorBatch",
    "Order",
    "OverloadChange",
    "PlanDecision",
    "Restart",
    "Start",
    "Stop",
    "Warned",
    "Wave",
    "read_events",
]

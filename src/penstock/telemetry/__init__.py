"""What a running job tells: events as values, and the log that keeps them."""

from penstock.telemetry.alerts import AlertRules, Alerts
from penstock.telemetry.batch_news import BatchNews
from penstock.telemetry.event_log import EventLog, read_events
from penstock.telemetry.events import (
    Alert,
    Batch,
    CellBatch,
    Event,
    Failure,
    Idle,
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
    "Alert",
    "AlertRules",
    "Alerts",
    "Batch",
    "BatchNews",
    "CellBatch",
    "Event",
    "EventFollower",
    "EventLog",
    "Failure",
    "Idle",
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

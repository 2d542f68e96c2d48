"""What a running job tells: events as values, and the log that keeps them."""

from penstock.telemetry.event_log import EventLog, read_events
from penstock.telemetry.events import Batch, CellBatch, Event, Failure, Restart, Start, Stop

__all__ = [
    "Batch",
    "CellBatch",
    "Event",
    "EventLog",
    "Failure",
    "Restart",
    "Start",
    "Stop",
    "read_events",
]

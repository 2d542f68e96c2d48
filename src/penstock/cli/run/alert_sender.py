"""Alerts on their way out: to a program, to an address, in a thread of their own.

A webhook that hangs must not hold the run, and a run that ends must not lose its last word. So
alerts wait in a queue, and closing waits for them, as long as one of them may take. What could not
be told is told on the run's own screen.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict

from penstock.job.redaction import redacted
from penstock.telemetry import Alert, AlertRules

SECONDS = 10.0
"""Time that a program or an address has for one alert."""
_WAITING = 256
"""Alerts that may wait: more than all kinds of all sources begin in a bad night."""


class AlertSender:
    """Sends alerts of the job called ``job`` by ``rules``; what fails goes to ``complain``."""

    def __init__(self, rules: AlertRules, job: str, complain: Callable[[str], None]) -> None:
        self._rules = rules
        self._job = job
        self._complain = complain
        self._waiting: queue.Queue[Alert | None] = queue.Queue(_WAITING)
        self._thread = threading.Thread(target=self._run, name="penstock alerts", daemon=True)
        self._thread.start()

    def send(self, alert: Alert) -> None:
        """Send ``alert`` soon."""
        try:
            self._waiting.put_nowait(alert)
        except queue.Full:
            self._complain(f"alert not sent, {_WAITING} wait already: {alert.text}")

    def close(self) -> None:
        """Wait for what is on its way, but not for ever."""
        with suppress(queue.Full):
            self._waiting.put(None, timeout=SECONDS)
        self._thread.join(2 * SECONDS)

    def _run(self) -> None:
        while (alert := self._waiting.get()) is not None:
            body = message(alert, self._job)
            for way in (self._tell_program, self._post):
                try:
                    way(alert, body)
                except (OSError, subprocess.SubprocessError, ValueError) as error:
                    self._complain(redacted(f"alert not sent: {alert.text}: {error}"))

    def _tell_program(self, alert: Alert, body: bytes) -> None:
        if not self._rules.command:
            return
        environment = os.environ | {
            "PENSTOCK_ALERT": alert.alert,
            "PENSTOCK_STATE": "over" if alert.is_over else "begins",
            "PENSTOCK_TEXT": alert.text,
            "PENSTOCK_JOB": self._job,
        }
        done = subprocess.run(
            self._rules.command, input=body, env=environment, timeout=SECONDS, capture_output=True
        )
        if done.returncode:
            words = done.stderr.decode(errors="replace").strip().splitlines()
            raise ValueError(f"the command ended with {done.returncode}: {' '.join(words[-1:])}")

    def _post(self, alert: Alert, body: bytes) -> None:
        if self._rules.webhook is None:
            return
        headers = {"Content-Type": "application/json", "User-Agent": "penstock"}
        request = urllib.request.Request(self._rules.webhook, body, headers)
        with urllib.request.urlopen(request, timeout=SECONDS):
            pass


def message(alert: Alert, job: str) -> bytes:
    """``alert`` as JSON. The field ``text`` is what chat services show."""
    state = "over" if alert.is_over else "begins"
    text = f"{job}: over: {alert.text}" if alert.is_over else f"{job}: {alert.text}"
    return json.dumps({**asdict(alert), "job": job, "state": state, "text": text}).encode()

"""What ends a bench before its figures are there."""

from __future__ import annotations

from pgflow_stepq.errors import StepqError


class BenchError(StepqError):
    """A workload did not do the work that it was timed for, so that its figure would say nothing."""


class MissingPeerError(BenchError):
    """Another engine can't be had on this machine; the text says what is missing."""

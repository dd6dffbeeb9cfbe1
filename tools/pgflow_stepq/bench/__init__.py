"""The command `bench`: workloads of one client, measured in interleaved rounds on one durable server."""

from __future__ import annotations

from pgflow_stepq.bench.command import add_parser, run
from pgflow_stepq.bench.errors import BenchError
from pgflow_stepq.bench.harness import Harness, Plan
from pgflow_stepq.bench.scales import SCALES, Scale
from pgflow_stepq.bench.workload import Workload
from pgflow_stepq.bench.workloads import WORKLOADS

__all__ = ["SCALES", "WORKLOADS", "BenchError", "Harness", "Plan", "Scale", "Workload", "add_parser", "run"]

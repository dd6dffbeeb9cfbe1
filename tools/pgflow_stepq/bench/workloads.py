"""The workloads by name, in the order in which they are shown. A new one is a class here and nothing else."""

from __future__ import annotations

from typing import Final

from pgflow_stepq.bench.chain import Chain, Single, Start, StartMany
from pgflow_stepq.bench.commit import Commit
from pgflow_stepq.bench.compiling import Compile, CompileLarge, Verify
from pgflow_stepq.bench.map_flow import Map, MapByClaim
from pgflow_stepq.bench.raw import Raw, RawByHundred, RawSingle
from pgflow_stepq.bench.workload import Workload

WORKLOADS: Final[dict[str, type[Workload]]] = {
    workload.name: workload
    for workload in (
        Commit,
        Raw,
        RawByHundred,
        RawSingle,
        Map,
        MapByClaim,
        Chain,
        Single,
        Start,
        StartMany,
        Compile,
        CompileLarge,
        Verify,
    )
}

"""The workloads by name, in the order in which they are shown and measured: those compared are close together."""

from __future__ import annotations

from typing import Final

from pgflow_stepq.bench.chain import Chain, Single, Start, StartMany
from pgflow_stepq.bench.commit import Commit
from pgflow_stepq.bench.compiling import Compile, CompileLarge, Verify
from pgflow_stepq.bench.diamond import Diamond
from pgflow_stepq.bench.history import ChainHistory, DiamondHistory, MapHistory, SingleHistory
from pgflow_stepq.bench.map_flow import Map, MapByClaim, MapOfTenThousand, MapsOfHundred, MapsOfThousand
from pgflow_stepq.bench.parallel import (
    EightSessionsEightQueues,
    EightSessionsOneMap,
    OneSessionEightQueues,
    OneSessionOneMap,
)
from pgflow_stepq.bench.pgflow_core import PgflowChain, PgflowMap, PgflowSingle, PgflowStart
from pgflow_stepq.bench.pgqueuer_jobs import PgqueuerBatch, PgqueuerChain, PgqueuerFlat
from pgflow_stepq.bench.raw import Raw, RawByHundred, RawSingle
from pgflow_stepq.bench.steady import SnapshotChain, SnapshotMap, SnapshotRaw, SteadyChain, SteadyMap, SteadyRaw
from pgflow_stepq.bench.waiting import WaitBacklog, WaitFlowMode, WaitIdle
from pgflow_stepq.bench.workload import Workload

WORKLOADS: Final[dict[str, type[Workload]]] = {
    workload.name: workload
    for workload in (
        Commit,
        Raw,
        RawByHundred,
        RawSingle,
        Map,
        MapHistory,
        MapByClaim,
        PgflowMap,
        Chain,
        ChainHistory,
        PgflowChain,
        PgqueuerChain,
        PgqueuerBatch,
        PgqueuerFlat,
        Diamond,
        DiamondHistory,
        Single,
        SingleHistory,
        PgflowSingle,
        Start,
        StartMany,
        PgflowStart,
        OneSessionOneMap,
        EightSessionsOneMap,
        OneSessionEightQueues,
        EightSessionsEightQueues,
        WaitIdle,
        WaitBacklog,
        WaitFlowMode,
        MapsOfHundred,
        MapsOfThousand,
        MapOfTenThousand,
        SteadyRaw,
        SnapshotRaw,
        SteadyMap,
        SnapshotMap,
        SteadyChain,
        SnapshotChain,
        Compile,
        CompileLarge,
        Verify,
    )
}

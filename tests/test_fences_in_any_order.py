"""Fences, and what operators and workers do meanwhile, in any order: a function is enabled when it should be."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any, NamedTuple

import psycopg
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from psycopg.types.json import Jsonb

from pgflow_stepq.pytest_plugin import Databases

Connection = psycopg.Connection[tuple[Any, ...]]

FLOWS = ("a", "b", "c")
FUNCTIONS = ("x", "y", "z")


class Deed(NamedTuple):
    """Something that is done to a flow, a function, or both."""

    kind: str
    flow: str
    function: str


DEEDS = st.builds(
    Deed,
    st.sampled_from(("register", "fence", "unfence", "disable", "enable")),
    st.sampled_from(FLOWS),
    st.sampled_from(FUNCTIONS),
)


# Every function serves two flows, and every flow has two functions.
BEGINNING = [Deed("register", flow, function) for flow, function in zip("abbcca", "xxyyzz", strict=True)]


class Model:
    """What a fence promises, in as few words as possible."""

    def __init__(self) -> None:
        self.served: dict[str, set[str]] = {flow: set() for flow in FLOWS}
        self.fenced: dict[str, set[str]] = {flow: set() for flow in FLOWS}
        self.by_hand: dict[str, bool] = {}

    def is_fenced(self, function: str) -> bool:
        return any(function in functions for functions in self.fenced.values())

    def is_enabled(self, function: str) -> bool:
        return self.by_hand[function] and not self.is_fenced(function)

    def enabled(self) -> dict[str, bool]:
        return {function: self.is_enabled(function) for function in self.by_hand}


@pytest.fixture(scope="module")
def conn(databases: Databases) -> Iterator[Connection]:
    with databases.database() as conninfo, psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("set client_min_messages to warning")
        for flow in FLOWS:
            shape = Jsonb({"steps": [{"slug": "only"}]})
            connection.execute("select pgflow.ensure_flow_compiled(%s, %s)", (flow, shape))
        yield connection


def is_done(conn: Connection, query: str, *values: object) -> bool:
    """Call what a fence may refuse."""
    try:
        with conn.transaction():
            conn.execute(query, values)
    except psycopg.Error as refusal:
        assert refusal.sqlstate == "PF012"
        return False
    return True


def do(conn: Connection, model: Model, deed: Deed) -> None:
    """Do it, and compare the answer with the model's."""
    kind, flow, function = deed
    if kind == "register":
        query = "select pgflow.register_worker(%s, %s, %s)"
        expected = not model.fenced[flow] and (function not in model.by_hand or model.is_enabled(function))
        assert is_done(conn, query, uuid.uuid4(), function, flow) is expected
        if expected:
            model.served[flow].add(function)
            model.by_hand.setdefault(function, True)
    elif kind == "fence":
        fenced = conn.execute("select function_name from pgflow.fence_flow(%s, 'a deployment')", (flow,)).fetchall()
        model.fenced[flow] |= model.served[flow]
        assert {name for (name,) in fenced} == model.fenced[flow]
    elif kind == "unfence":
        lifted = conn.execute("select function_name, enabled, reason from pgflow.unfence_flow(%s)", (flow,)).fetchall()
        assert {name for name, *_ in lifted} == model.fenced[flow]
        model.fenced[flow] = set()
        for name, enabled, reason in lifted:
            assert (enabled, reason is None) == (model.is_enabled(name),) * 2
            event("restored" if enabled else "held back by somebody else")
    elif function in model.by_hand:
        if kind == "disable":
            conn.execute("select pgflow.disable_worker_function(%s, 'by hand')", (function,))
            model.by_hand[function] = False
        else:
            expected = not model.is_fenced(function)
            assert is_done(conn, "select pgflow.enable_worker_function(%s)", function) is expected
            model.by_hand[function] |= expected


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(st.lists(DEEDS, min_size=10, max_size=30))
def test_a_function_is_enabled_when_nobody_disabled_it_and_no_flow_is_fenced_with_it(
    conn: Connection, deeds: list[Deed]
) -> None:
    model = Model()
    with conn.transaction(force_rollback=True):
        for deed in BEGINNING + deeds:
            do(conn, model, deed)
            known = dict(conn.execute("select function_name, enabled from pgflow.worker_functions").fetchall())
            assert known == model.enabled()

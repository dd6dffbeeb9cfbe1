"""A plan tells exactly what compiling then does, whatever was done to flows and queues before."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import psycopg
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from pgflow_stepq.routing import RoutingError, resolve_step_queues

Connection = psycopg.Connection[tuple[Any, ...]]
Json = Any
World = dict[str, Any]

STEPS: Json = {"steps": [{"slug": "a"}, {"slug": "b"}, {"slug": "c", "stepType": "map", "dependencies": ["b"]}]}
PLAIN: Json = {"steps": [{"slug": "a"}, {"slug": "b", "dependencies": ["a"]}]}

# What every test begins with: a flow of either mode, with runs in flight, and a message that is no task's.
BEGINNING = """
    select pgflow.ensure_flow_compiled('Steps', %(steps)s, queue_mode => 'step');
    select pgflow.ensure_flow_compiled('Plain', %(plain)s);
    select pgflow.start_flows('Steps', array['1', '2']::jsonb[]);
    select pgflow.start_flow('Plain', '3');
    select pgmq.send('steps__c', '{}');
"""

# What defines flows, what belongs to runs, and what PGMQ has. A row written again and a table made again are others.
WORLD = """
    create function pg_temp.messages(relation regclass) returns bigint language plpgsql as $$
    declare
      counted bigint;
    begin
      execute format('select count(*) from %s', relation) into counted;
      return counted;
    end
    $$;

    create function pg_temp.rows_of(relation regclass) returns jsonb language plpgsql as $$
    declare
      lines jsonb;
    begin
      execute format(
        'select coalesce(jsonb_agg(line.line order by line.line), ''[]'')
         from (select to_jsonb(one) || jsonb_build_object(''ctid'', one.ctid) from %s as one) as line (line)',
        relation
      )
      into lines;
      return lines;
    end
    $$;

    create function pg_temp.world() returns jsonb language sql as $$
      select jsonb_object_agg(known.name, pg_temp.rows_of(known.name::regclass))
      || jsonb_build_object(
        'relations',
        (
          select jsonb_agg(
            jsonb_build_object(
              'name', class.relname,
              'kind', class.relkind,
              'oid', class.oid::bigint,
              'messages', case when class.relkind = 'r' and id.attname is not null then pg_temp.messages(class.oid) end
            )
            order by class.oid
          )
          from pg_class as class
          left join pg_attribute as id
            on id.attrelid = class.oid
            and id.attname = 'msg_id'
          where class.relnamespace = 'pgmq'::regnamespace
        )
      )
      from unnest(
        '{pgflow.flows,pgflow.steps,pgflow.deps,pgflow.queues,pgflow.runs,pgflow.step_states,pgflow.step_tasks,
          pgflow.workers,pgmq.meta}'::text[]
      ) as known (name)
    $$;
"""


class Arguments(NamedTuple):
    """Those of ensure_flow_compiled() and plan_flow_compiled()."""

    flow_slug: str | None
    shape: Json
    allow_data_loss: bool | None = False
    queue_mode: str | None = "flow"
    routes: Json = None

    def values(self) -> tuple[Any, ...]:
        return (
            self.flow_slug,
            None if self.shape is None else json.dumps(self.shape),
            self.allow_data_loss,
            self.queue_mode,
            None if self.routes is None else json.dumps(self.routes),
        )


def world(conn: Connection) -> World:
    row = conn.execute("select pg_temp.world()").fetchone()
    assert row is not None
    return dict(row[0])


def plan_of(conn: Connection, arguments: Arguments) -> Json:
    row = conn.execute("select pgflow.plan_flow_compiled(%s, %s, %s, %s, %s)", arguments.values()).fetchone()
    assert row is not None
    return row[0]


def compiled(conn: Connection, arguments: Arguments) -> tuple[Json, Json]:
    """Return the report of compiling, or its refusal; a refusal leaves the transaction usable."""
    try:
        with conn.transaction():
            row = conn.execute("select pgflow.ensure_flow_compiled(%s, %s, %s, %s, %s)", arguments.values()).fetchone()
            assert row is not None
            return row[0], None
    except psycopg.Error as error:
        diag = error.diag
        return None, {
            "sqlstate": diag.sqlstate,
            "message": diag.message_primary,
            "detail": diag.message_detail or "",
            "hint": diag.message_hint or "",
        }


def queues(seen: World) -> dict[str, set[tuple[str, Any]]]:
    """Return what there is of each queue: its tables, and its rows in PGMQ's list."""
    pieces: dict[str, set[tuple[str, Any]]] = {}
    for relation in seen["relations"]:
        if relation["messages"] is not None and relation["name"][:2] in {"q_", "a_"}:
            pieces.setdefault(relation["name"][2:], set()).add((relation["name"][:2], relation["oid"]))
    for listed in seen["pgmq.meta"]:
        pieces.setdefault(listed["queue_name"].lower(), set()).add(("listed", listed["ctid"]))
    return pieces


def lost(before: World, after: World) -> dict[str, int]:
    def gone(table: str, *key: str) -> int:
        left = {tuple(row[name] for name in key) for row in after[table]}
        return sum(tuple(row[name] for name in key) not in left for row in before[table])

    tables_left = {relation["oid"] for relation in after["relations"]}
    return {
        "runs": gone("pgflow.runs", "run_id"),
        "tasks": gone("pgflow.step_tasks", "run_id", "step_slug", "task_index"),
        "messages": sum(
            relation["messages"] or 0
            for relation in before["relations"]
            if relation["name"].startswith("q_") and relation["oid"] not in tables_left
        ),
    }


def derived_routes(arguments: Arguments) -> Json:
    """Return the route map that a client of its own mind passes; None where there is none."""
    slugs = [step["slug"] for step in arguments.shape["steps"]]
    if arguments.queue_mode == "flow":
        return [{"step_slug": slug, "queue_name": str(arguments.flow_slug).lower()} for slug in slugs]
    try:
        routes = resolve_step_queues(arguments.flow_slug, slugs)
    except RoutingError:
        return None
    return [{"step_slug": route.step_slug, "queue_name": route.queue_name} for route in routes]


def persisted_routes(seen: World, arguments: Arguments) -> Json:
    steps = [step for step in seen["pgflow.steps"] if step["flow_slug"] == arguments.flow_slug]
    steps.sort(key=lambda step: int(step["step_index"]))
    return [{"step_slug": step["step_slug"], "queue_name": step["queue_name"]} for step in steps]


def check(conn: Connection, arguments: Arguments) -> str:
    """Compile as planned, or fail: return the status."""
    before = world(conn)
    plan = plan_of(conn, arguments)
    assert world(conn) == before, "the plan changed something"

    report, refusal = compiled(conn, arguments)
    after = world(conn)
    had, has = queues(before), queues(after)

    assert plan["status"] == ("refused" if report is None else report["status"]), (plan, report, refusal)
    assert plan["error"] == refusal
    assert plan["loses"] == lost(before, after)
    made = {name for name, pieces in has.items() if pieces - had.get(name, set())}
    dropped = {name for name, pieces in had.items() if pieces - has.get(name, set())}
    assert plan["creates"] == sorted(made)
    assert plan["drops"] == sorted(dropped)
    assert all(len(has[name] - had.get(name, set())) == 3 for name in made), "a queue was made in part"
    assert not any(had[name] & has.get(name, set()) for name in dropped), "a queue was dropped in part"
    if plan["status"] not in {"compiled", "recompiled"}:
        assert after == before, "compiling changed something"
    if report is None:
        assert refusal["sqlstate"].startswith("PF"), refusal
        assert all(collision["queue_name"] in refusal["message"] for collision in plan["collisions"][:1])
        return f"refused: {refusal['sqlstate']}"

    assert plan["collisions"] == []
    assert plan["differences"] == report["differences"]
    assert plan["routes"] == derived_routes(arguments)
    assert report["routes"] == persisted_routes(after, arguments)
    if plan["status"] != "mismatch":
        assert plan["routes"] == report["routes"]
        assert plan_of(conn, arguments)["status"] == "verified"
    return str(plan["status"])


# What may have happened before, through the extension and behind its back.
# {q} is a queue, {Q} its name in capitals, {f} a flow, {s} a step of it.

DEEDS = {
    "start": "select pgflow.start_flow('{f}', '1')",
    "define": "select pgflow.create_flow('{f}')",
    "repair": "select pgflow.repair_queues('{f}')",
    "delete": "select pgflow.delete_flow_and_data('{f}')",
    "send": "select pgmq.send('{q}', '1')",
    "purge": "select pgmq.purge_queue('{q}')",
    "be local": "set local app.settings.jwt_secret = 'super-secret-jwt-token-with-at-least-32-characters-long'",
    "be deployed": "set local app.settings.jwt_secret = 'another'",
    "drop": "select pgmq.drop_queue('{q}')",
    "drop in capitals": "select pgmq.drop_queue('{Q}')",
    "drop the table": "drop table pgmq.q_{q}",
    "drop the archive": "drop table pgmq.a_{q}",
    "drop both tables": "drop table pgmq.q_{q}, pgmq.a_{q}",
    "strike off the list": "delete from pgmq.meta where queue_name = '{q}'",
    "list in capitals": "update pgmq.meta set queue_name = '{Q}' where queue_name = '{q}'",
    "make": "select pgmq.create('{q}'); select pgmq.send('{q}', '1')",
    "make in capitals": "select pgmq.create('{Q}')",
    "make again": "select pgmq.drop_queue('{q}'); select pgmq.create('{q}'); select pgmq.send('{q}', '1')",
    "make again unnoticed": "select pgmq.drop_queue('{Q}'); select pgmq.create('{q}'); select pgmq.send('{q}', '1')",
    "put a view in its place": "drop table pgmq.q_{q}; create view pgmq.q_{q} as select 1 as one",
    "put another table in its place": "drop table pgmq.q_{q}; create table pgmq.q_{q} (one int)",
    "leave a table": "create table pgmq.q_{q} (msg_id bigint generated always as identity, vt timestamptz)",
    "leave an archive": "create table pgmq.a_{q} (msg_id bigint)",
    "leave an index": "create table pgmq.other (one int); create index q_{q}_vt_idx on pgmq.other (one)",
    "leave a sequence": "create sequence pgmq.q_{q}_msg_id_seq",
    "leave a type": "create type pgmq.q_{q} as enum ('one')",
    "rename the table": "alter table pgmq.q_{q} rename to aside",
    # As by somebody whom no foreign key stops, or who restored half of a dump.
    "disown": """
        set local session_replication_role = replica;
        delete from pgflow.queues where queue_name = '{q}';
        set local session_replication_role = origin
    """,
    "give to a flow": "update pgflow.queues set flow_slug = '{f}', step_slug = null where queue_name = '{q}'",
    "give to a step": "update pgflow.queues set flow_slug = '{f}', step_slug = '{s}' where queue_name = '{q}'",
    "route a step": "update pgflow.steps set queue_name = '{q}' where flow_slug = '{f}' and step_slug = '{s}'",
    "change a step": "update pgflow.steps set when_unmet = 'fail' where flow_slug = '{f}' and step_slug = '{s}'",
    "change the mode": "update pgflow.flows set queue_mode = 'step' where flow_slug = '{f}'",
    "delete the steps": """
        delete from pgflow.deps where flow_slug = '{f}';
        delete from pgflow.steps where flow_slug = '{f}'
    """,
    "delete all but the queues": """
        delete from pgflow.step_tasks where flow_slug = '{f}';
        delete from pgflow.step_states where flow_slug = '{f}';
        delete from pgflow.runs where flow_slug = '{f}';
        delete from pgflow.deps where flow_slug = '{f}';
        delete from pgflow.steps where flow_slug = '{f}';
        delete from pgflow.flows where flow_slug = '{f}'
    """,
}

# The flows of the beginning, a new one, and names that meet theirs.
FLOWS = ["Steps", "Plain", "New", "STEPS", "plain", "Steps__b", "steps__a_vt_idx", "plain_pkey"]
QUEUES = {
    "Steps": ["steps__a", "steps__b", "steps__c", "steps"],
    "Plain": ["plain", "plain__a", "plain__b"],
    "New": ["new", "new__a", "new__b", "new__1"],
}
EXTREME_FLOWS = ["F" * 44, "F" * 45, "F" * 47, "F" * 48, "F" * 128, "F" * 129, "1st", "run", "", None]

SOUND: list[Json] = [
    STEPS,
    PLAIN,
    {"steps": []},
    {"steps": [{"slug": "a"}]},
    {"steps": [{"slug": "b"}, {"slug": "a"}]},
    {"steps": [{"slug": "a"}, {"slug": "b", "dependencies": ["a"], "whenUnmet": "skip-cascade"}]},
    {"steps": [{"slug": "a"}, {"slug": "l" * 50}, {"slug": "d"}]},
    {"steps": [{"slug": "b"}, {"slug": "B"}]},
    {"steps": [{"slug": "a"}, {"slug": "a_vt_idx"}]},
    {"steps": [{"slug": "a", "requiredInputPattern": {"defined": True, "value": {"x": 1}}}], "options": {"timeout": 5}},
    STEPS | {"options": {"maxAttempts": 7}},
]
FLAWED: list[Json] = [
    None,
    [],
    "steps",
    {},
    {"steps": {}},
    {"steps": [7]},
    {"steps": [{}]},
    {"steps": [{"slug": "not valid"}]},
    {"steps": [{"slug": "a"}, {"slug": "a"}]},
    {"steps": [{"slug": "a", "dependencies": ["a"]}]},
    {"steps": [{"slug": "a", "dependencies": ["b"]}, {"slug": "b"}]},
    {"steps": [{"slug": "a", "dependencies": ["nowhere"]}]},
    {"steps": [{"slug": "a", "dependencies": "b"}]},
    {"steps": [{"slug": "a"}, {"slug": "b"}, {"slug": "c", "stepType": "map", "dependencies": ["a", "b"]}]},
    {"steps": [{"slug": "a", "stepType": "loop"}]},
    {"steps": [{"slug": "a", "whenUnmet": 1}]},
    {"steps": [{"slug": "a", "whenExhausted": None}]},
    {"steps": [{"slug": "a", "forbiddenInputPattern": {"defined": True}}]},
    {"steps": [{"slug": "a", "options": {"timeout": 0}}], "options": {"maxAttempts": 1.5}},
    STEPS | {"colour": "blue"},
    {"steps": [{"slug": "a", "colour": "blue"}]},
]


class Deed(NamedTuple):
    """One of DEEDS, and what it is done to."""

    what: str
    queue: str
    flow: str = "Steps"
    step: str = "a"

    def be_done(self, conn: Connection) -> bool:
        """Do it, and tell whether it was possible: there must be what is to be dropped, and room for what is made."""
        try:
            with conn.transaction():
                conn.execute(DEEDS[self.what].format(q=self.queue, Q=self.queue.upper(), f=self.flow, s=self.step))
        except psycopg.Error:
            return False
        return True


@st.composite
def arguments_about(draw: st.DrawFn, flow_slug: str) -> Arguments:
    """Arguments about that flow, or one whose names meet its; now and then with one flaw."""
    sound = Arguments(
        draw(st.just(flow_slug) | st.just(flow_slug) | st.sampled_from(FLOWS)),
        draw(st.sampled_from([STEPS, PLAIN]) | st.sampled_from(SOUND)),
        draw(st.sampled_from([True, False, True, None, True])),
        draw(st.sampled_from(["step", "flow"])),
    )
    routes = derived_routes(sound) or []
    match draw(st.sampled_from(["own routes", *[""] * 8, "flow", "shape", "mode", "their routes", ""])):
        case "flow":
            return sound._replace(flow_slug=draw(st.sampled_from(EXTREME_FLOWS)))
        case "shape":
            return sound._replace(shape=draw(st.sampled_from(FLAWED)))
        case "mode":
            return sound._replace(queue_mode=draw(st.sampled_from(["both", None])))
        case "their routes":
            return sound._replace(routes=draw(st.sampled_from([routes[1:], routes[::-1], [None], {}, "steps__a"])))
        case "own routes":
            return sound._replace(routes=routes)
    return sound


@st.composite
def histories(draw: st.DrawFn) -> list[Deed | Arguments]:
    """Rounds of a few deeds and one compilation, mostly about one flow and its queues."""
    flow_slug = draw(st.sampled_from([*QUEUES]))
    deeds = st.builds(
        Deed,
        st.sampled_from([*DEEDS]),
        st.sampled_from(QUEUES[flow_slug]) | st.sampled_from([queue for queues in QUEUES.values() for queue in queues]),
        st.just(flow_slug) | st.sampled_from(FLOWS),
        st.sampled_from("abc"),
    )
    rounds = st.tuples(st.lists(deeds, min_size=1, max_size=4), arguments_about(flow_slug))
    history: list[Deed | Arguments] = []
    for done, arguments in draw(st.lists(rounds, min_size=1, max_size=3)):
        history += [*done, arguments]
    return history


@pytest.fixture(scope="module")
def planner(database: str) -> Iterator[Connection]:
    """A connection to a database with the flows of the beginning; what an example does is rolled back."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(WORLD)
        for statement in BEGINNING.strip().split(";\n"):
            connection.execute(statement, {"steps": json.dumps(STEPS), "plain": json.dumps(PLAIN)})
        yield connection


def live(planner: Connection, history: list[Deed | Arguments]) -> Iterator[str]:
    """Let all of it happen and roll it back; tell how each compilation and each deed ended."""
    with planner.transaction(force_rollback=True):
        for happening in history:
            if isinstance(happening, Arguments):
                yield check(planner, happening)
            else:
                yield f"{happening.what}: {'done' if happening.be_done(planner) else 'impossible'}"


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(histories())
def test_compiling_does_what_its_plan_says(planner: Connection, history: list[Deed | Arguments]) -> None:
    for ending in live(planner, history):
        event(ending)


ONE_STEP: Json = {"steps": [{"slug": "a"}]}
ELEVEN_STEPS: Json = {"steps": [{"slug": f"long{number}"} for number in range(11)]}


@pytest.mark.parametrize(
    ("history", "ending"),
    [
        ([Arguments("New", STEPS, queue_mode="step")], "compiled"),
        ([Arguments("Steps", STEPS, queue_mode="step")], "verified"),
        ([Arguments("Steps", ONE_STEP, queue_mode="step")], "mismatch"),
        ([Arguments("Steps", ONE_STEP, True, "step")], "recompiled"),
        ([Deed("be local", "steps__a"), Arguments("Steps", ONE_STEP, queue_mode="step")], "recompiled"),
        ([Deed("be deployed", "steps__a"), Arguments("Steps", ONE_STEP, queue_mode="step")], "mismatch"),
        ([Arguments("F" * 45, STEPS, queue_mode="step")], "refused: PF001"),
        ([Arguments("F" * 44, ELEVEN_STEPS, queue_mode="step")], "refused: PF002"),
        ([Arguments("New", {"steps": [{"slug": "a"}, {"slug": "A"}]}, queue_mode="step")], "refused: PF003"),
        ([Arguments("New", {"steps": [{"slug": "a"}, {"slug": "a_vt_idx"}]}, queue_mode="step")], "refused: PF003"),
        ([Deed("make", "new"), Arguments("New", STEPS)], "refused: PF004"),
        ([Deed("make in capitals", "new__b"), Arguments("New", STEPS, queue_mode="step")], "refused: PF004"),
        ([Deed("leave an archive", "new__b"), Arguments("New", STEPS, queue_mode="step")], "refused: PF004"),
        ([Deed("disown", "steps__a"), Arguments("Steps", STEPS, True, "step")], "refused: PF004"),
        ([Arguments("Steps__b", STEPS)], "refused: PF005"),
        ([Arguments("steps__a_vt_idx", STEPS)], "refused: PF005"),
        ([Arguments("Plain", {"steps": []}, True, "step")], "refused: PF006"),
        ([Arguments("Steps", STEPS)], "refused: PF007"),
        ([Arguments("Steps", STEPS, queue_mode="step", routes=[])], "refused: PF007"),
        ([Deed("drop", "steps__c"), Arguments("Steps", STEPS, queue_mode="step")], "refused: PF007"),
        ([Deed("make again", "steps__c"), Arguments("Steps", STEPS, True, "step")], "refused: PF007"),
        ([Deed("route a step", "steps__b"), Arguments("Steps", STEPS, queue_mode="step")], "refused: PF007"),
        ([Deed("route a step", "steps__b", "Plain"), Arguments("Steps", STEPS, True)], "refused: PF007"),
        ([Arguments("Plain", {"steps": [{"slug": "not valid"}]})], "refused: PF008"),
        ([Arguments("F" * 48, STEPS)], "refused: PF015"),
        ([Arguments("Plain", PLAIN, queue_mode="both")], "refused: PF019"),
    ],
)  # fmt: skip
def test_every_way_to_end_is_planned(planner: Connection, history: list[Deed | Arguments], ending: str) -> None:
    *before, last = live(planner, history)
    assert not any("impossible" in done for done in before)
    assert last == ending


# What is no longer there can't be dropped or lost, and what is there already is not made.
@pytest.mark.parametrize(
    "history",
    [
        [Deed("drop", "steps__b"), Arguments("Steps", STEPS, True, "step")],
        [Deed("drop", "plain"), Arguments("Plain", PLAIN, True)],
        [Deed("make again", "steps__b"), Arguments("Steps", ONE_STEP, True, "step")],
        [Deed("make again", "plain"), Arguments("Plain", PLAIN, True, "step")],
        [Deed("put a view in its place", "steps__b"), Arguments("Steps", ONE_STEP, True, "step")],
        [Deed("put another table in its place", "steps__b"), Arguments("Steps", ONE_STEP, True, "step")],
        [Deed("delete all but the queues", "steps__a"), Arguments("Steps", STEPS, queue_mode="step")],
        [Deed("delete all but the queues", "plain", "Plain"), Arguments("Plain", PLAIN)],
    ],
    ids=lambda history: f"{history[0].what}, {history[1].flow_slug}, {len(history[1].shape['steps'])} steps",
)
def test_a_plan_reckons_with_queues_as_they_are(planner: Connection, history: list[Deed | Arguments]) -> None:
    done, ending = live(planner, history)
    assert done.endswith("done")
    assert ending in {"compiled", "recompiled"}

"""Queue names: SQL, Python and a reading of the rule that is neither agree on every name and on every refusal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, NamedTuple

import psycopg
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pgflow_stepq.routing import (
    BadSlugError,
    DuplicateQueueNameError,
    EmptyFlowError,
    FlowQueueNameError,
    RoutingError,
    StepQueueNameError,
    StepRoute,
    resolve_step_queues,
)

Connection = psycopg.Connection[tuple[Any, ...]]
Slugs = Sequence[str | None] | None
Route = tuple[int, str, str, str]
Flow = tuple[str | None, list[str | None] | None]


class Refusal(NamedTuple):
    sqlstate: str | None
    message: str | None
    detail: str | None
    hint: str | None


@pytest.fixture(scope="module")
def resolver(database: str) -> Iterator[Connection]:
    """One connection for all examples."""
    with psycopg.connect(database, autocommit=True) as connection:
        yield connection


def by_sql(resolver: Connection, flow_slug: str | None, step_slugs: Slugs) -> list[Route] | Refusal:
    query = "select * from pgflow.resolve_step_queues(%s, %s::text[])"
    given_slugs = None if step_slugs is None else list(step_slugs)
    try:
        return resolver.execute(query, (flow_slug, given_slugs)).fetchall()
    except psycopg.Error as error:
        diag = error.diag
        return Refusal(diag.sqlstate, diag.message_primary, diag.message_detail, diag.message_hint)


def by_python(flow_slug: str | None, step_slugs: Slugs) -> list[Route] | Refusal:
    try:
        routes = resolve_step_queues(flow_slug, step_slugs)
    except RoutingError as error:
        return Refusal(error.sqlstate, error.message, error.detail, error.hint)
    return [(route.step_index, route.step_slug, route.queue_name, route.resolution) for route in routes]


# The rule a third time, as it is told: character by character, and a refusal is its SQLSTATE alone.

SMALL = "abcdefghijklmnopqrstuvwxyz"
CAPITALS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def lowered(text: str) -> str:
    letters = ""
    for letter in text:
        letters += SMALL[CAPITALS.index(letter)] if letter in CAPITALS else letter
    return letters


def is_slug(text: str | None) -> bool:
    if text is None or text in ("", "run") or len(text) > 128 or text[0] in "0123456789":
        return False
    return all(letter in SMALL + CAPITALS + "0123456789_" for letter in text)


def as_told(flow_slug: str | None, step_slugs: Slugs) -> list[Route] | str:
    if step_slugs is None or len(step_slugs) == 0:
        return "PF006"
    for slug in [flow_slug, *step_slugs]:
        if not is_slug(slug):
            return "PF008"
    flow, slugs = str(flow_slug), [str(slug) for slug in step_slugs]

    seen = set()
    for slug in slugs:
        seen.add(lowered(slug))
    if len(seen) < len(slugs):
        return "PF003"

    if len(lowered(flow + "__" + "0")) > 47:
        return "PF001"

    told: list[Route] = []
    names = set()
    for step_index in range(len(slugs)):
        slug = slugs[step_index]
        readable = lowered(flow + "__" + slug)
        fallback = lowered(flow + "__" + str(step_index))
        if len(readable) <= 47:
            told.append((step_index, slug, readable, "readable"))
        elif len(fallback) <= 47:
            told.append((step_index, slug, fallback, "fallback"))
        else:
            return "PF002"
        names.add(told[-1][2])
    return "PF003" if len(names) < len(told) else told


# What is drawn: lengths near the bounds more often than any other, and whatever a slug must not be.

MAX_STEPS = 1500
LETTERS, DIGITS = CAPITALS + SMALL + "_", "0123456789"

BAD = [
    None, "", "run", "1", "9a", "a-b", "a b", " a", "a.b", "a\n", "a\r\n", "a\t", "a\\", 'a"b', "a'b", "a/b", "%s",
    "a\x7f", "a\x01", "\u0130", "\u0131", "\u017f", "\u1e9e", "\u212a", "\u00e9", "a\u0301", "\uff41", "\u0661",
    "a\u0661", "a\u2028", "\U0001f600", "a" * 129, "\u0130" * 128,
]  # fmt: skip


def spelled(length: int, seed: int) -> str:
    """Return a slug of that many characters; letting Hypothesis draw each of them would be slow."""
    source = Random(seed)  # noqa: S311
    return source.choice(LETTERS) + "".join(source.choices(LETTERS + DIGITS, k=length - 1))


def slugs(*lengths: int) -> st.SearchStrategy[str]:
    return st.builds(spelled, st.sampled_from(lengths), st.integers(0, 10**6))


any_slug = slugs(*range(1, 129))
words = st.sampled_from(["Run", "RUN", "run_", "_", "__", "_0", "x__0", "null", "select"])
flow_slugs = slugs(41, 42, 43, 44) | slugs(43, 44, 45, 46) | slugs(1, 2, 20) | any_slug | words
bad_slugs = st.sampled_from(BAD) | st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=4
)


@st.composite
def flows(draw: st.DrawFn) -> Flow:
    flow_slug = draw(flow_slugs)
    room_for_suffix = max(45 - len(flow_slug), 0)
    # With one more step the last index does not fit.
    indices_that_fit = min(10**room_for_suffix, MAX_STEPS - 1)
    count = draw(st.sampled_from([indices_that_fit, indices_that_fit + 1, 11]) | st.integers(1, 12) | st.just(101))

    # Plain steps that have readable names or have none, and drawn ones among them.
    width = draw(st.sampled_from([1, 128]))
    step_slugs: list[str | None] = [f"s{index:0{width - 1}}" for index in range(count)]
    edges = [index for index in (0, 9, 10, 99, 100, 999, 1000, count - 2, count - 1) if 0 <= index < count]
    places = st.sampled_from(edges) | st.integers(0, count - 1)
    step_slug = slugs(max(room_for_suffix, 1), room_for_suffix + 1) | slugs(1, 2, 127, 128) | any_slug | words
    for index, slug in draw(st.lists(st.tuples(places, step_slug), max_size=4)):
        step_slugs[index] = slug

    match draw(st.sampled_from(["sound"] * 6 + ["bad step", "bad flow", "twins", "no steps"])):
        case "bad step":
            step_slugs[draw(places)] = draw(bad_slugs)
        case "bad flow":
            return draw(bad_slugs), step_slugs
        case "twins":
            twin = str(step_slugs[draw(places)])
            step_slugs.insert(draw(places), draw(st.sampled_from([twin, twin.swapcase(), twin.upper()])))
        case "no steps":
            return flow_slug, draw(st.sampled_from([None, []]))
    return flow_slug, step_slugs


@settings(max_examples=400, deadline=None, derandomize=True, database=None)
@given(flows())
@example((None, None))
@example((None, ["a"]))
@example(("a", [None]))
@example(("1", [None, "run"]))
@example(("a" * 43, [f"{'s' * 100}{index}" for index in range(100)]))
@example(("a" * 43, [f"{'s' * 100}{index}" for index in range(101)]))
@example(("a" * 41, [f"{'s' * 100}{index}" for index in range(MAX_STEPS)]))
@example(("a" * 42, [f"{'s' * 100}{index}" for index in range(MAX_STEPS)]))
def test_sql_and_python_and_the_rule_agree(resolver: Connection, flow: Flow) -> None:
    of_sql = by_sql(resolver, *flow)
    assert of_sql == by_python(*flow)
    assert (of_sql.sqlstate if isinstance(of_sql, Refusal) else of_sql) == as_told(*flow)


# The examples of the rule, and each of its bounds.


def fillers(count: int) -> list[str]:
    """Steps whose readable names fit behind any flow slug that has a queue at all."""
    return list(LETTERS[:count])


def sole_route(resolver: Connection, flow_slug: str, step_slugs: list[str], step_index: int) -> tuple[str, str]:
    """Return the queue of one step and its resolution, as SQL and Python have it."""
    of_sql = by_sql(resolver, flow_slug, step_slugs)
    assert of_sql == by_python(flow_slug, step_slugs)
    assert not isinstance(of_sql, Refusal), of_sql
    return of_sql[step_index][2:]


def refused(resolver: Connection, flow_slug: str | None, step_slugs: Slugs) -> Refusal:
    """Return how SQL and Python refuse a flow."""
    of_sql = by_sql(resolver, flow_slug, step_slugs)
    assert of_sql == by_python(flow_slug, step_slugs)
    assert isinstance(of_sql, Refusal), of_sql
    return of_sql


@pytest.mark.parametrize(
    ("flow_slug", "step_slugs", "step_index", "route"),
    [
        ("communityThreadsV1", ["classify", "deliverSlack"], 0, ("communitythreadsv1__classify", "readable")),
        ("communityThreadsV1", ["classify", "deliverSlack"], 1, ("communitythreadsv1__deliverslack", "readable")),
        ("Orders", [*fillers(3), "Ship" * 20], 3, ("orders__3", "fallback")),
        ("RUN", ["Run"], 0, ("run__run", "readable")),
        ("_", ["_"], 0, ("____", "readable")),
        ("f", ["S" * 44], 0, ("f__" + "s" * 44, "readable")),
        ("f", ["S" * 45], 0, ("f__0", "fallback")),
        ("f", ["S" * 128], 0, ("f__0", "fallback")),
        ("F" * 43, ["ab"], 0, ("f" * 43 + "__ab", "readable")),
        ("F" * 43, ["abc"], 0, ("f" * 43 + "__0", "fallback")),
        ("F" * 44, ["A"], 0, ("f" * 44 + "__a", "readable")),
        ("F" * 44, ["ab"], 0, ("f" * 44 + "__0", "fallback")),
        ("F" * 44, [*fillers(9), "long"], 9, ("f" * 44 + "__9", "fallback")),
        ("F" * 44, fillers(11), 10, ("f" * 44 + "__k", "readable")),
        ("F" * 43, [*(f"long{index}" for index in range(100))], 99, ("f" * 43 + "__99", "fallback")),
        ("F" * 42, [*(f"long{index}" for index in range(1000))], 999, ("f" * 42 + "__999", "fallback")),
        ("F" * 41, [*(f"long{index}" for index in range(1500))], 1499, ("f" * 41 + "__1499", "fallback")),
        ("f", [*(f"{'long' * 12}{index}" for index in range(1500))], 1499, ("f__1499", "fallback")),
        ("F" * 44, ["_", *fillers(12)], 12, ("f" * 44 + "__l", "readable")),
    ],
)  # fmt: skip
def test_a_name_that_fits_is_taken(
    resolver: Connection, flow_slug: str, step_slugs: list[str], step_index: int, route: tuple[str, str]
) -> None:
    assert sole_route(resolver, flow_slug, step_slugs, step_index) == route


@pytest.mark.parametrize("characters", [45, 46, 47, 48, 127, 128])
def test_a_flow_that_fits_no_index_is_refused(resolver: Connection, characters: int) -> None:
    flow_slug = "Flow" + "X" * (characters - 4)
    assert refused(resolver, flow_slug, ["a", "deliverSlack"]) == (
        "PF001",
        f'Flow "{flow_slug}" cannot use per-step queues.',
        f'The shortest required queue "{flow_slug.lower()}__0" is {characters + 3} characters; PGMQ allows at most 47.',
        "Shorten the concrete flow slug or use the default single queue.",
    )


@pytest.mark.parametrize(
    ("characters", "step_index", "step_slug", "readable"),
    [
        (44, 10, "deliverSlack", 58),
        (44, 10, "xy", 48),
        (44, 11, "X" * 128, 174),
        (43, 100, "abc", 48),
        (42, 1000, "abcd", 48),
    ],
)
def test_a_step_that_fits_neither_way_is_refused(
    resolver: Connection, characters: int, step_index: int, step_slug: str, readable: int
) -> None:
    flow_slug = "F" * characters
    # Steps before it whose fallbacks fit, and one behind it that would be refused, too.
    slugs = [f"long{index}" for index in range(min(step_index, 10 ** (45 - characters)))]
    slugs += fillers(step_index - len(slugs))
    assert refused(resolver, flow_slug, [*slugs, step_slug, "behind"]) == (
        "PF002",
        f'Cannot derive a queue for step "{step_slug}" at index {step_index} in flow "{flow_slug}".',
        f"The readable name is {readable} characters and the index fallback is 48; PGMQ allows at most 47.",
        "Shorten the concrete flow slug, shorten the step slug enough for the readable name, or use the default single "
        "queue.",
    )


@pytest.mark.parametrize(
    ("step_slugs", "first", "second"),
    [
        (["a", "b", "A"], ("a", 0), ("A", 2)),
        (["a", "b", "b", "A"], ("b", 1), ("b", 2)),
        (["a", "A", "a"], ("a", 0), ("A", 1)),
        (["L" * 128, "a", "l" * 128], ("L" * 128, 0), ("l" * 128, 2)),
    ],
    ids=["case", "equal", "three", "long"],
)
@pytest.mark.parametrize("flow_slug", ["Orders", "F" * 128], ids=["short", "too long"])
def test_two_slugs_of_one_name_are_refused_before_any_naming(
    resolver: Connection, flow_slug: str, step_slugs: list[str], first: tuple[str, int], second: tuple[str, int]
) -> None:
    assert refused(resolver, flow_slug, step_slugs) == (
        "PF003",
        f'Steps "{first[0]}" and "{second[0]}" of flow "{flow_slug}" cannot both have a queue.',
        f"They are at index {first[1]} and {second[1]}; queue names are lower case, so both slugs stand for the same "
        "name.",
        "Give the steps slugs that differ in more than case.",
    )
    with pytest.raises(DuplicateQueueNameError) as refusal:
        resolve_step_queues(flow_slug, step_slugs)
    error = refusal.value
    assert (error.other_step_slug, error.other_step_index) == first
    assert (error.step_slug, error.step_index) == second


@pytest.mark.parametrize("step_slugs", [None, [], ()], ids=["none", "list", "tuple"])
@pytest.mark.parametrize("flow_slug", ["Orders", "F" * 128, "not valid", None], ids=["good", "long", "bad", "none"])
def test_a_flow_without_steps_is_refused_first_of_all(
    resolver: Connection, flow_slug: str | None, step_slugs: Slugs
) -> None:
    assert refused(resolver, flow_slug, step_slugs) == (
        "PF006",
        f'Flow "{flow_slug or ""}" has no steps, so it cannot use per-step queues.',
        "Per-step queues need at least one step; 0 were given.",
        "Add a step, or use the default single queue.",
    )


@pytest.mark.parametrize("slug", BAD)
def test_a_bad_slug_is_refused_wherever_it_stands(resolver: Connection, slug: str | None) -> None:
    of_flow = refused(resolver, slug, ["a", "A", slug])
    of_step = refused(resolver, "F" * 128, ["a", "A", slug, None])
    assert of_flow.sqlstate == of_step.sqlstate == "PF008"
    assert of_flow.detail == of_step.detail == f"It has {len(slug or '')} characters."
    assert f'at index 2 in flow "{"F" * 128}"' in str(of_step.message)


# What Python adds: types, and the figures behind the words.


def test_routes_are_frozen_values_in_step_order() -> None:
    routes = resolve_step_queues("communityThreadsV1", ("classify", "d" * 40))
    assert routes == (
        StepRoute(0, "classify", "communitythreadsv1__classify", "readable"),
        StepRoute(1, "d" * 40, "communitythreadsv1__1", "fallback"),
    )
    with pytest.raises(AttributeError, match="cannot assign to field 'queue_name'"):
        routes[0].queue_name = "another"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("flow_slug", "step_slugs", "error_class", "fields"),
    [
        ("F" * 45, ["a", "b"], FlowQueueNameError, ("F" * 45, "a", 0, "f" * 45 + "__a", "f" * 45 + "__0", 48, 48)),
        (
            "F" * 44, [*fillers(10), "Slack"], StepQueueNameError,
            ("F" * 44, "Slack", 10, "f" * 44 + "__slack", "f" * 44 + "__10", 51, 48),
        ),
        ("F", ["a", "A"], DuplicateQueueNameError, ("F", "A", 1, "f__a", "f__1", 4, 4)),
        ("F", [], EmptyFlowError, ("F", None, None, None, None, None, None)),
        ("no slug", ["a"], BadSlugError, ("no slug", None, None, None, None, None, None)),
        ("F", ["a", "no slug"], BadSlugError, ("F", "no slug", 1, None, None, None, None)),
        ("F", ["a", None], BadSlugError, ("F", None, 1, None, None, None, None)),
    ],
)  # fmt: skip
def test_an_error_carries_what_its_words_say(
    flow_slug: str, step_slugs: Slugs, error_class: type[RoutingError], fields: tuple[Any, ...]
) -> None:
    with pytest.raises(error_class) as refusal:
        resolve_step_queues(flow_slug, step_slugs)
    error = refusal.value
    assert fields == (
        error.flow_slug, error.step_slug, error.step_index,
        error.readable, error.fallback, error.readable_length, error.fallback_length,
    )  # fmt: skip
    assert error.maximum == 47
    assert str(error) == f"{error.message} ({error.sqlstate})\nDETAIL: {error.detail}\nHINT: {error.hint}"


def test_one_string_is_no_list_of_slugs() -> None:
    with pytest.raises(TypeError, match="not a single string"):
        resolve_step_queues("orders", "ship")

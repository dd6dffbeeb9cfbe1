"""The install script is what the rooms say, in the order that the template gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgflow_stepq import cli
from pgflow_stepq.render import RoomError, release_path, render, stale_lines


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """An extension directory with two rooms and no template yet."""
    for name, content in {
        "schema/tables.sql": "create table pgflow.flows ();\n",
        "schema/is_valid_slug.sql": "\nselect '{{ not jinja }} {% nor this %}';\n\n\n",
        "schema/deps.sql": "create table pgflow.deps ();",
        "engine/start_flow.sql": "select 'ü';\n",
        "releases/pgflow_stepq--0.0.1.sql": "select 'an earlier release';\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return tmp_path


def write_template(source: Path, *rooms: str) -> None:
    lines = "\n".join("{{ room(" + room + ") }}" for room in rooms)
    (source / "install.sql.j2").write_text(f"\\echo load me by create extension \\quit\n\n{lines}\n", encoding="utf-8")


def test_named_files_come_first_then_the_others_by_name_each_after_one_blank_line(source: Path) -> None:
    write_template(source, '"schema", "tables"', '"engine"')
    assert render(source) == (
        "\\echo load me by create extension \\quit\n"
        "\n"
        "create table pgflow.flows ();\n"
        "\n"
        "create table pgflow.deps ();\n"
        "\n"
        "select '{{ not jinja }} {% nor this %}';\n"
        "\n"
        "select 'ü';\n"
    )


@pytest.mark.parametrize(
    ("rooms", "complaint"),
    [
        (['"schema"'], "does not name the room.*engine"),
        (['"schema"', '"engine"', '"claiming"'], '"claiming", but .* holds no .sql file'),
        (['"schema", "flows"', '"engine"'], 'no ".*schema/flows.sql". The room holds: deps, is_valid_slug, tables'),
        (['"schema", "deps", "deps"', '"engine"'], '"deps" twice'),
        (['"schema"', '"engine"', '"schema"'], '"schema" twice'),
    ],
    ids=["forgotten room", "unknown room", "unknown file", "file twice", "room twice"],
)
def test_a_template_that_does_not_fit_the_rooms_is_refused(source: Path, rooms: list[str], complaint: str) -> None:
    write_template(source, *rooms)
    with pytest.raises(RoomError, match=complaint):
        render(source)


def test_an_empty_file_is_refused(source: Path) -> None:
    write_template(source, '"schema"', '"engine"')
    (source / "engine" / "start_flow.sql").write_text("\n")
    with pytest.raises(RoomError, match=r'start_flow.sql" is empty'):
        render(source)


def test_a_file_in_a_subdirectory_is_refused(source: Path) -> None:
    write_template(source, '"schema"', '"engine"')
    (source / "engine" / "deep").mkdir()
    (source / "engine" / "deep" / "lost.sql").write_text("select 1;\n")
    with pytest.raises(RoomError, match="rooms are flat"):
        render(source)


def test_a_stale_script_is_shown_as_a_diff(tmp_path: Path) -> None:
    script = tmp_path / "x.sql"
    assert stale_lines(script, "select 1;\n")
    script.write_text("select 2;\n")
    assert {"-select 2;\n", "+select 1;\n"} <= set(stale_lines(script, "select 1;\n"))
    script.write_text("select 1;\n")
    assert stale_lines(script, "select 1;\n") == []


def test_line_ends_count(tmp_path: Path) -> None:
    script = tmp_path / "x.sql"
    script.write_bytes(b"select 1;\r\n")
    assert stale_lines(script, "select 1;\n")


def test_the_committed_script_is_what_the_rooms_render_to(capsys: pytest.CaptureFixture[str]) -> None:
    status = cli.main(["render", "--check"])
    assert status == 0, capsys.readouterr().out
    assert release_path().read_text(encoding="utf-8").startswith('\\echo Use "CREATE EXTENSION pgflow_stepq"')

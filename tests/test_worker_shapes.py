"""Flow files: both forms are read, and a bad one is named with the way out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pgflow_stepq.shapes import FlowFile, FlowFileError, read_flow_file

SHAPE = {"steps": [{"slug": "ship", "stepType": "single", "dependencies": []}]}


def written(directory: Path, text: str) -> Path:
    path = directory / "flow.json"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_flow_file_carries_its_slug(tmp_path: Path) -> None:
    path = written(tmp_path, json.dumps({"slug": "orders", "shape": SHAPE}))
    assert read_flow_file(path) == read_flow_file(path, "orders") == FlowFile("orders", SHAPE)


def test_a_bare_shape_takes_the_slug_that_is_given(tmp_path: Path) -> None:
    assert read_flow_file(written(tmp_path, json.dumps(SHAPE)), "orders") == FlowFile("orders", SHAPE)


def test_a_byte_order_mark_is_no_matter(tmp_path: Path) -> None:
    assert read_flow_file(written(tmp_path, "\ufeff" + json.dumps(SHAPE)), "orders").shape == SHAPE


@pytest.mark.parametrize(
    ("text", "slug", "says"),
    [
        (json.dumps(SHAPE), None, "name the flow with --flow"),
        (json.dumps({"slug": "orders", "shape": SHAPE}), "other", 'holds the flow "orders", but --flow says "other"'),
        (json.dumps({"slug": 7, "shape": SHAPE}), None, '"slug" must be a string'),
        (json.dumps({"shape": SHAPE}), None, '"slug" must be a string'),
        (json.dumps({"slug": "orders", "shape": []}), None, '"shape" must be an object'),
        ("[]", "orders", "must hold a JSON object, not list"),
        ('{"steps": [}', "orders", "is not JSON: line 1, column 12"),
        ('{"steps": NaN}', "orders", "NaN is no JSON number"),
        ("[" * 100_000, "orders", "is not usable JSON"),
    ],
    ids=["no slug", "two slugs", "number", "absent slug", "list as shape", "list", "broken", "NaN", "deep"],
)
def test_a_bad_flow_file_is_named_with_the_fault(tmp_path: Path, text: str, slug: str | None, says: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(FlowFileError, match=says) as caught:
        read_flow_file(path, slug)
    assert str(path) in str(caught.value)


def test_a_file_that_is_missing_or_no_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(FlowFileError, match=r"nowhere\.json: No such file"):
        read_flow_file(tmp_path / "nowhere.json")
    (tmp_path / "latin1.json").write_bytes(b'{"slug": "caf\xe9"}')
    with pytest.raises(FlowFileError, match=r"latin1\.json is not UTF-8 text \(byte 13\)"):
        read_flow_file(tmp_path / "latin1.json")

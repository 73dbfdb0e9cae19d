"""Options as flags give them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes_engine.batch.options import OPTIONAL_NUMBERS, BatchOptions, checked, taken_over
from hermes_engine.errors import UsageError


def test_defaults_are_the_contracts() -> None:
    options = checked({"run_name": "r"})
    told = {name: getattr(options, name) for name in ("batch_size", "num_workers", "max_turns", "distribution")}
    assert told == {"batch_size": 10, "num_workers": 4, "max_turns": 10, "distribution": "default"}
    assert (options.folder, options.fsync, options.endpoint_wait) == (Path("data/r"), "second", 3600)


def test_every_option_is_described() -> None:
    assert [name for name, field in BatchOptions.model_fields.items() if not field.description] == []


@pytest.mark.parametrize(
    ("values", "flag"),
    [
        ({"batch_size": 0}, "--batch_size"),
        ({"batch_size": -3}, "--batch_size"),
        ({"num_generations": 0}, "--num_generations"),
        ({"temperature": float("nan")}, "--temperature"),
        ({"timeout_seconds": 0}, "--timeout_seconds"),
        ({"max_samples": "many"}, "--max_samples"),
        ({"fsync": "never"}, "--fsync"),
        ({"toolsets": "web,nosuch"}, "--toolsets"),
        ({"nosuch": 1}, "--nosuch"),
    ],
)
def test_a_wrong_value_names_its_flag(values: dict[str, Any], flag: str) -> None:
    with pytest.raises(UsageError, match=f"^{flag}: ") as caught:
        checked({"run_name": "r", **values})
    assert "\n" not in caught.value.line


def test_toolsets_come_as_text_or_list() -> None:
    assert checked({"run_name": "r", "toolsets": " web, file"}).toolsets == ("file", "web")
    assert checked({"run_name": "r", "toolsets": ""}).toolsets == ()


@pytest.mark.parametrize("name", ["sampling", "extra_body"])
@pytest.mark.parametrize("field", ["model", "messages", "tools", "stream", "n"])
def test_what_a_rows_request_has_of_its_own_is_not_set_from_outside(name: str, field: str) -> None:
    """A `model` smuggled in would be asked while the record names another."""
    with pytest.raises(UsageError, match=f"^--{name}: {field} cannot be set here"):
        checked({"run_name": "r", name: {field: 1}})


def test_no_number_that_json_lacks_goes_to_a_server() -> None:
    with pytest.raises(UsageError, match=r"^--sampling: .*NaN"):
        checked({"run_name": "r", "sampling": {"top_p": float("nan")}})


def test_a_limit_is_told_with_the_value_that_misses_it() -> None:
    with pytest.raises(UsageError, match=r"^--batch_size: 0 is too small; it must be 1 or more$"):
        checked({"run_name": "r", "batch_size": 0})
    with pytest.raises(UsageError, match=r"^--num_workers: 99999 is too large; it must be 4096 or less$"):
        checked({"run_name": "r", "num_workers": 99999})


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("num_workers", "two", "--num_workers: 'two' is not a whole number"),
        ("max_turns", 2.5, "--max_turns: 2.5 is not a whole number"),
        ("temperature", "hot", "--temperature: 'hot' is not a number"),
        ("record", "perhaps", "--record: 'perhaps' is neither true nor false"),
        ("fsync", "never", "--fsync: 'never' is none of 'row', 'second' or 'end'"),
    ],
)
def test_a_value_of_another_kind_is_told_in_words(name: str, value: Any, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        checked({"run_name": "r", name: value})
    assert str(caught.value) == said


def test_several_addresses_come_one_by_one_or_with_commas() -> None:
    given = {"run_name": "r", "base_url": ("http://a/v1", "http://b/v1, https://c/v1,http://a/v1")}
    assert checked(given).base_url == ("http://a/v1", "http://b/v1", "https://c/v1")
    assert checked({"run_name": "r", "base_url": "http://h/a,b/v1"}).base_url == ("http://h/a,b/v1",)
    assert checked({"run_name": "r", "base_url": None}).base_url == ()
    before = {"base_url": "http://a/v1"}  # as runs of earlier versions have it
    assert taken_over(checked({"run_name": "r"}), before)[0].base_url == ("http://a/v1",)


def test_a_key_belongs_to_one_address() -> None:
    two = ("http://a/v1", "http://b/v1")
    assert checked({"run_name": "r", "base_url": two, "api_key": ("k1", "k2")}).api_key == ("k1", "k2")
    assert checked({"run_name": "r", "api_key": "k1"}).api_key == ("k1",)
    with pytest.raises(UsageError, match="--api_key is given 1 times for 2 --base_url: one for each"):
        checked({"run_name": "r", "base_url": two, "api_key": "k1"})
    with pytest.raises(UsageError, match="--api_key is given 2 times"):
        checked({"run_name": "r", "api_key": ("k1", "k2")})
    assert checked({"run_name": "r", "resume": True, "api_key": ("k1", "k2")}).api_key == ("k1", "k2")


@pytest.mark.parametrize("shard", ["0/4", "5/4", "1", "a/b", "1/0", "-1/4", "1/4/2"])
def test_a_part_that_is_none_is_refused(shard: str) -> None:
    with pytest.raises(UsageError, match=f"^--shard: {shard} is no part; the first of four is 1/4"):
        checked({"run_name": "r", "shard": shard})


def test_no_key_is_shown_or_stored() -> None:
    options = checked({"run_name": "r", "api_key": "sk-secret-0123456789"})
    assert "sk-secret" not in repr(options)
    assert "sk-secret" not in str(options.stored())


def test_stored_options_come_back_equal(tmp_path: Path) -> None:
    options = checked(
        {
            "run_name": "r",
            "dataset_file": tmp_path / "d.jsonl",
            "sampling": {"top_p": 0.5, "stop": ["a"]},
            "toolsets": "web",
            "mode": "plan",
            "work_dir": tmp_path,
        }
    )
    again, changes = taken_over(checked({"run_name": "r"}), options.stored())
    assert changes == []
    assert again.model_dump(exclude={"output_dir"}) == options.model_dump(exclude={"output_dir"})


def test_a_stored_option_nobody_knows_is_passed_over() -> None:
    options, changes = taken_over(checked({"run_name": "r"}), {"of_the_future": 1, "max_turns": 3})
    assert (options.max_turns, changes) == (3, [])


def test_a_number_that_a_run_has_is_taken_away_by_none() -> None:
    stored = checked({"run_name": "r", "max_samples": 5, "temperature": 0.5, "max_cost_usd": 1}).stored()
    options, changes = taken_over(checked({"run_name": "r", "max_samples": "none", "temperature": " None "}), stored)
    assert (options.max_samples, options.temperature, options.max_cost_usd) == (None, None, 1.0)
    assert changes == ["temperature: 0.5 until now, not set from here on"]
    optional = {
        name for name, field in BatchOptions.model_fields.items() if field.annotation in (int | None, float | None)
    }
    assert optional == set(OPTIONAL_NUMBERS)


def test_only_a_changed_meaning_is_told() -> None:
    stored = checked({"run_name": "r", "max_turns": 3, "num_workers": 2}).stored()
    options, changes = taken_over(checked({"run_name": "r", "max_turns": 3, "num_workers": 9}), stored)
    assert (options.num_workers, changes) == (9, [])
    _, changes = taken_over(checked({"run_name": "r", "sampling": {"top_k": 5}}), stored)
    assert changes == ["sampling: differs from here on"]
    _, changes = taken_over(checked({"run_name": "r", "temperature": 0.5}), stored)
    assert changes == ["temperature: not set until now, 0.5 from here on"]

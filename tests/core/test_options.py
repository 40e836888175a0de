"""Configurations by name: to JSON and back, and options changed by their dotted names."""

import copy
import itertools
import json
from dataclasses import replace
from typing import Any

import pytest

from mulv.agents import ALGORITHMS, preset
from mulv.agents.mulv.config import MuLVConfig
from mulv.agents.mulv.groups import (
    BonusConfig,
    CategoricalLatent,
    ClosedFormConfig,
    DDPGPolicy,
    DeepConfig,
    MonteCarloConfig,
    SACPolicy,
)
from mulv.core.errors import MulvError
from mulv.core.options import from_tree, kind_of, to_tree, with_options
from mulv.nets.trunk import TrunkConfig
from mulv.run.config import RunConfig, config_hash, from_json, to_json, with_run_options

PRESETS = [(algo, name) for algo, found in ALGORITHMS.items() for name in found.presets]
DEFAULT = MuLVConfig()


def changed(options: dict[str, Any], config: MuLVConfig = DEFAULT) -> MuLVConfig:
    return with_options(config, options)


@pytest.mark.parametrize(("algo", "name"), PRESETS)
def test_every_preset_survives_json(algo: str, name: str) -> None:
    preset = ALGORITHMS[algo].presets[name]
    tree = json.loads(json.dumps(to_tree(preset)))
    assert from_tree(type(preset), tree) == preset


def test_a_group_of_several_kinds_says_which_and_another_does_not() -> None:
    tree = to_tree(changed({"policy": "ddpg"}))
    assert (tree["policy"]["kind"], tree["critic"]["kind"]) == ("ddpg", "closed_form")
    assert "kind" not in tree["elbo"]
    assert kind_of(TrunkConfig) is None  # whose kind is a field like any other
    assert tree["trunk"]["kind"] == "layernorm"


def test_fields_that_are_missing_have_their_defaults() -> None:
    assert from_tree(MuLVConfig, {"critic": {"kind": "deep"}}) == replace(DEFAULT, critic=DeepConfig())


def test_a_group_of_several_kinds_must_say_which() -> None:
    with pytest.raises(MulvError, match="critic says no kind; there are: closed_form, monte_carlo, deep"):
        from_tree(MuLVConfig, {"critic": {"features": 3}})


def test_a_group_of_another_field_is_refused() -> None:
    with pytest.raises(MulvError, match="critic is SACPolicy"):
        changed({"critic": SACPolicy()})


def test_an_option_changes_its_field_and_no_other() -> None:
    new = changed({"critic.features": 9})
    assert new == replace(DEFAULT, critic=replace(DEFAULT.critic, features=9))


def test_another_kind_keeps_what_both_have_and_takes_its_own_defaults_for_the_rest() -> None:
    before = changed({"critic.features": 9, "critic.ridge": 0.5})
    assert changed({"critic": "monte_carlo"}, before).critic == MonteCarloConfig(features=9, ridge=0.5)
    apart = changed({"critic.trains_representation": False})
    assert changed({"critic": "deep"}, apart).critic == DeepConfig(trains_representation=False)


def test_there_and_back_again_loses_only_what_the_other_kind_has_not() -> None:
    before = changed({"latent.dim": 9, "latent.covariance": "diagonal"})
    there = changed({"latent": "categorical"}, before)
    assert there.latent == CategoricalLatent(dim=9)
    back = changed({"latent": "gaussian"}, there)
    assert (back.latent.dim, back.latent.covariance) == (9, "isotropic")


def test_naming_the_kind_that_it_is_changes_nothing() -> None:
    before = changed({"critic.features": 9})
    assert changed({"critic": "closed_form"}, before) == before


@pytest.mark.parametrize(
    "options",
    [
        {"bonus.rows": 400, "batch_size": 500, "bonus.scale": 1.0},
        {"critic.samples": 3, "critic": "deep"},
        {"latent": "categorical", "critic": "closed_form", "latent.dim": 8},
        {"policy.noise.initial": 0.5, "policy": "ddpg", "policy.noise": {"final": 0.2}},
    ],
    ids=["limits across fields", "a kind and its option", "two kinds", "groups within groups"],
)
def test_the_order_of_options_does_not_matter(options: dict[str, Any]) -> None:
    paper = ALGORITHMS["mulv"].presets["paper"]
    results = {with_options(paper, dict(order)) for order in itertools.permutations(options.items())}
    assert len(results) == 1
    assert results != {paper}


def test_a_later_layer_changes_what_an_earlier_one_made() -> None:
    on, off = {"bonus.scale": 1.0, "critic.features": 9}, {"bonus": "none", "critic": "monte_carlo"}
    later = with_options(DEFAULT, on, off)
    assert (later.bonus, later.critic) == (None, MonteCarloConfig(features=9))
    assert with_options(DEFAULT, off, on).bonus == BonusConfig(scale=1.0)


def test_limits_hold_for_the_last_layer_alone() -> None:
    assert with_options(DEFAULT, {"bonus.rows": 400}, {"batch_size": 500}).bonus.rows == 400


def test_limits_hold_for_what_comes_out() -> None:
    with pytest.raises(MulvError, match=r"bonus\.rows is 400; it must be at most batch_size, 256"):
        changed({"bonus.rows": 400})
    with pytest.raises(MulvError, match=r"^critic\.features is 0; it must be at least 1$"):
        changed({"critic.features": 0})


@pytest.mark.parametrize(
    "on", [{"bonus.scale": 0.1}, {"bonus": {"scale": 0.1}}, {"bonus": {}}, {"bonus": BonusConfig()}]
)
def test_a_group_that_is_off_is_turned_on_by_its_options(on: dict[str, Any]) -> None:
    assert changed(on).bonus == BonusConfig()


@pytest.mark.parametrize("off", ["none", None])
def test_a_group_that_may_be_off_is_turned_off_by_none(off: str | None) -> None:
    assert changed({"bonus": off}, changed({"bonus.scale": 1.0})) == DEFAULT


def test_options_of_a_group_may_come_together_and_leave_the_others() -> None:
    before = changed({"policy": "ddpg", "policy.noise.final": 0.02})
    noise = changed({"policy": {"noise": {"initial": 0.5}}}, before).policy.noise
    assert (noise.initial, noise.final) == (0.5, 0.02)


@pytest.mark.parametrize(
    "option", [{"policy": {"kind": "ddpg"}}, {"policy.kind": "ddpg"}, {"policy": "ddpg"}]
)
def test_a_kind_may_be_named_in_each_way(option: dict[str, Any]) -> None:
    assert changed(option).policy == DDPGPolicy()


def test_an_option_of_a_group_that_was_given_whole_changes_that_group() -> None:
    options = {"trunk": TrunkConfig("mlp", 16, 1), "trunk.width": 8}
    assert changed(options).trunk == TrunkConfig("mlp", 8, 1)


def test_a_whole_number_is_a_float_where_the_field_is_one() -> None:
    one, other = (with_run_options(RunConfig(), {"gamma": value}) for value in (1, 1.0))
    assert config_hash(one) == config_hash(other)


def test_options_of_a_run_and_of_its_agent_are_told_apart() -> None:
    early = RunConfig(agent=preset("mulv", "early"))
    config = with_run_options(early, {"seed": 3, "policy": "ddpg", "critic.features": 9})
    assert config == RunConfig(
        seed=3, agent=replace(DEFAULT, policy=DDPGPolicy(), critic=ClosedFormConfig(features=9))
    )
    assert from_json(to_json(config)) == config


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"windw": 3}, "MuLVConfig has no field 'windw'; did you mean 'window'?"),
        ({"critic.featurs": 3}, "no field 'featurs' (in 'critic.featurs'); did you mean 'features'?"),
        ({"critic": {"featurs": 3}}, "no field 'featurs' (in 'critic.featurs'); did you mean 'features'?"),
        ({"critic": "deap"}, "no kind of critic is called 'deap'; did you mean 'deep'?"),
        ({"critic": "none"}, "no kind of critic is called 'none'; there are: closed_form, monte_carlo, deep"),
        ({"bonus": "on"}, "bonus is 'on'; its options turn it on, and 'none' turns it off"),
        ({"bonus": "none", "bonus.scale": 1.0}, "bonus is none, so bonus.scale cannot be set"),
        ({"bonus.scale": 1.0, "bonus": None}, "bonus is none, so bonus.scale cannot be set"),
        ({"window.x": 3}, "no option is called 'window.x': window is a single value"),
        ({"policy.noise.initial": 0.5}, "SACPolicy has no field 'noise' (in 'policy.noise.initial')"),
        ({"window": "3"}, "MuLVConfig.window is '3', which is not int"),
        ({"window": True}, "MuLVConfig.window is True, which is not int"),
        ({"gamma": 10**400}, "which is not float"),
        ({"critic": 3}, "critic is 3, which is not an object of kind closed_form or monte_carlo or deep"),
        ({"elbo.posterior": "both"}, "posterior is 'both', which is not 'prior' or 'learned'"),
        ({"trunk": "mlp"}, "MuLVConfig.trunk is 'mlp', which is not an object"),
    ],
)
def test_what_cannot_be_is_one_line(options: dict[str, Any], line: str) -> None:
    with pytest.raises(MulvError) as raised:
        changed(options)
    assert line in str(raised.value)
    assert "\n" not in str(raised.value)


def test_options_are_left_as_they_were_given() -> None:
    options = {"policy": {"kind": "ddpg", "noise": {"initial": 0.5}}, "trunk": {"width": 8}}
    before = copy.deepcopy(options)
    changed(options)
    assert options == before

"""Options on the command line: kinds of groups are chosen by name, and bring their own options."""

import os
import re
import subprocess

import pytest

from mulv import cli
from mulv.agents import preset
from mulv.agents.action_noise import ActionNoise
from mulv.agents.mulv.config import MuLVConfig
from mulv.agents.mulv.groups import BonusConfig, DDPGPolicy, DeepConfig, GreedyPolicy, SACPolicy
from mulv.cli.arguments import choose_kinds, describe_kinds, value_of, without
from mulv.cli.offline import parse_offline
from mulv.cli.train import parse_train
from mulv.core.errors import MulvError
from tests.run.support import command


def agent_of(line: str) -> MuLVConfig:
    """The agent that `mulv train` would train."""
    agent = parse_train(line.split()).config.agent
    assert isinstance(agent, MuLVConfig)
    return agent


@pytest.mark.parametrize(
    "line",
    [
        "--policy ddpg --policy.noise.initial 0.5",
        "--policy=ddpg --policy.noise.initial=0.5",
        "--policy.noise.initial 0.5 --policy ddpg",
    ],
)
def test_a_kind_brings_its_options(line: str) -> None:
    assert agent_of(line).policy == DDPGPolicy(ActionNoise(initial=0.5))


@pytest.mark.parametrize(
    "line",
    [
        "--discrete-policy greedy --discrete-policy.exploration-rate 0.3",
        "--discrete_policy greedy --discrete_policy.exploration_rate 0.3",
        "--discrete_policy=greedy --discrete-policy.exploration_rate=0.3",
    ],
)
def test_underscores_are_as_good_as_dashes(line: str) -> None:
    assert agent_of(line).discrete_policy == GreedyPolicy(0.3)


def test_dashes_are_as_good_as_underscores_in_a_kinds_name() -> None:
    assert agent_of("--critic monte-carlo").critic == agent_of("--critic monte_carlo").critic
    assert agent_of("--critic monte-carlo").critic.kind == "monte_carlo"


def test_the_last_of_two_kinds_counts_as_of_any_option() -> None:
    assert agent_of("--policy ddpg --policy sac").policy == SACPolicy()
    assert agent_of("--window 2 --window 5").window == 5


def test_a_group_that_is_off_is_turned_on_by_its_options() -> None:
    assert agent_of("--bonus.scale 1").bonus == BonusConfig(scale=1.0)
    assert agent_of("--window 2").bonus is None


def test_a_group_that_is_on_is_turned_off_by_none() -> None:
    assert agent_of("--preset paper").image is not None
    assert agent_of("--preset paper --image none").image is None
    assert agent_of("--bonus none").bonus is None


def test_kinds_that_only_go_together_are_chosen_together() -> None:
    """The paper's critic does not go with a categorical latent."""
    agent = agent_of("--preset paper --latent categorical --critic closed_form")
    assert (agent.latent.kind, agent.critic.kind) == ("categorical", "closed_form")


def test_limits_across_fields_hold_for_the_whole_line() -> None:
    assert agent_of("--bonus.rows 400 --batch-size 500").bonus.rows == 400


def test_a_preset_keeps_its_options_under_another_kind_where_that_has_them() -> None:
    assert agent_of("--preset paper --critic closed_form").critic.features == 512


def test_learning_from_data_has_the_same_options() -> None:
    arguments = "--data D --preset early --critic deep --critic.samples 3".split()  # noqa: SIM905
    assert parse_offline(arguments).config.agent.critic == DeepConfig(samples=3)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "--critic deep --critic.ridge 1",
            "--critic.ridge is an option of --critic closed_form or --critic monte_carlo, "
            "and not of --critic deep",
        ),
        (
            "--policy.noise.initial 0.5",
            "--policy.noise is an option of --policy ddpg, and not of --policy sac",
        ),
        (
            "--latent categorical --latent.no-normalise",
            "--latent.normalise is an option of --latent gaussian, and not of --latent categorical",
        ),
        ("--bonus none --bonus.scale 1", "--bonus.scale is an option of --bonus, and not of --bonus none"),
        (
            "--critic.featurs 3",
            "--critic.featurs is no option of --critic closed_form; did you mean --critic.features?",
        ),
        (
            "--critic deep --critic.sampls 3",
            "--critic.sampls is no option of --critic deep; did you mean --critic.samples?",
        ),
        ("--policy ddgp", "no kind of policy is called 'ddgp'; did you mean 'ddpg'?"),
        ("--bonus on", "bonus is 'on'; its options turn it on, and 'none' turns it off"),
        ("--policy", "--policy needs a value"),
        ("--policy --window 3", "--policy needs a value"),
        ("--critic.features 0", "critic.features is 0; it must be at least 1"),
        ("--bonus.scale inf", "bonus.scale is inf; it must be finite"),
        ("--learning-rate inf", "learning_rate is inf; it must be finite"),
        ("--learning-rate nan", "learning_rate is nan; it must be finite"),
        (
            "--encode-changes --no-normalise-observations",
            "encode_changes needs the scales of normalise_observations; leave that on, or both off",
        ),
        (
            "--critic deep --bonus.scale 1",
            "a bonus needs features whose weights are learned; --critic deep has none",
        ),
    ],
)
def test_an_option_that_cannot_act_is_refused_in_one_line(
    line: str, message: str, capsys: pytest.CaptureFixture[str], tmp_path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        cli.main(["train", "--preset", "early", "--total-steps", "20", *line.split()])
    error = capsys.readouterr().err
    assert ended.value.code == 1
    assert error.startswith(f"mulv: error: {message}")
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_what_chose_a_kind_is_taken_out_and_the_rest_is_left_in_order() -> None:
    arguments = "--window 2 --policy ddpg --critic=deep --policy.noise.initial 0.5".split()  # noqa: SIM905
    agent, left = choose_kinds(preset("mulv", "default"), arguments)
    assert left == ["--window", "2", "--policy.noise.initial", "0.5"]
    assert (agent.policy.kind, agent.critic.kind) == ("ddpg", "deep")


def test_a_flag_is_not_taken_for_a_longer_one() -> None:
    arguments = ["--policy.noise.initial", "0.5", "--policy-x", "1"]
    assert value_of("--policy", arguments) is None
    assert without("--policy", arguments) == arguments


def test_agents_without_kinds_are_described_by_nothing() -> None:
    assert describe_kinds(preset("sac", "default")) == ""


def test_help_says_which_kinds_there_are_and_what_is_off() -> None:
    text = describe_kinds(preset("mulv", "default"))
    assert "--critic closed_form | monte_carlo | deep" in text
    assert "--bonus none (it is off)" in text
    assert "--image none (it is on)" in describe_kinds(preset("mulv", "paper"))


def flags_in(capsys: pytest.CaptureFixture[str], *arguments: str) -> set[str]:
    """What the help of `mulv train` lists."""
    with pytest.raises(SystemExit) as ended:
        cli.main(["train", *arguments, "--help"])
    assert ended.value.code == 0
    return set(re.findall(r"--[a-z.-]+", capsys.readouterr().out))


def test_help_is_at_most_150_lines() -> None:
    """In a process of its own: what is captured is drawn otherwise than what a terminal shows."""
    environment = {**os.environ, "COLUMNS": "110", "PYTHONUTF8": "1"}
    shown = subprocess.run(command("train", "--help"), capture_output=True, text=True, env=environment)
    lines = shown.stdout.splitlines()
    assert 100 < len(lines) <= 150
    assert max(map(len, lines[5:])) == 110  # the boxes are as wide as the terminal


def test_help_lists_the_options_of_the_kinds_that_are_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    flags = flags_in(capsys)
    assert {"--critic.samples", "--policy.initial-temperature"} <= flags
    assert not {"--critic.features", "--policy.noise.initial", "--bonus.scale"} & flags


def test_help_lists_the_options_of_a_kind_that_it_is_given(capsys: pytest.CaptureFixture[str]) -> None:
    flags = flags_in(capsys, "--critic", "monte_carlo", "--bonus.scale", "1")
    assert {"--critic.samples", "--bonus.scale"} <= flags
    assert "--image.channels" not in flags


def test_a_size_scales_the_presets_widths_and_an_option_counts_above_it() -> None:
    def widths(*arguments: str) -> tuple[int, int, int]:
        agent = parse_train(arguments).config.agent
        return agent.trunk.width, agent.latent.dim, agent.critic.features

    early = ("--preset", "early")
    assert widths(*early) == widths(*early, "--size", "m") == (256, 64, 256)
    assert widths(*early, "--size", "s") == (128, 32, 128)
    assert widths(*early, "--size", "l", "--latent.dim", "100") == (1024, 100, 1024)
    assert parse_train(["--algo", "sac", "--size", "s"]).config.agent.trunk.width == 128
    with pytest.raises(MulvError, match="no size is called 'xl'; did you mean 'l'"):
        parse_train(["--size", "xl"])

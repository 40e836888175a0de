"""Named hyperparameters: the paper's are those of its table."""

from mulv.agents.mulv.config import PRESETS

TABLE = {  # the paper's table of hyperparameters; its random steps and intervals are options of a run
    "batch_size": 256,
    "learning_rate": 1e-4,
    "gamma": 0.99,
    "tau": 0.01,
    "window": 3,
}
IMAGE_TABLE = {"pretraining": 10_000, "embedding_dim": 100, "channels": 32}


def test_the_papers_preset_has_its_tables_numbers() -> None:
    paper = PRESETS["paper"]
    assert {name: getattr(paper, name) for name in TABLE} == TABLE
    assert {name: getattr(paper.image, name) for name in IMAGE_TABLE} == IMAGE_TABLE
    assert paper.latent.dim == 100
    assert (paper.trunk.width, paper.trunk.depth) == (1024, 2)


def test_the_default_remembers_longer_than_the_paper_and_lvrep_nothing() -> None:
    windows = [PRESETS[name].window for name in ("default", "paper", "lvrep")]
    assert windows == [8, 3, 1]
    assert not PRESETS["lvrep"].critic_sees_rewards  # it sees the state

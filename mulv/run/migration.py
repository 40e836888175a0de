"""Converts configurations saved by older versions of mulv."""

from typing import Any

Tree = dict[str, Any]

# Where each field of µLV-Rep's old flat configuration is now. A group's kind has an entry of its own.
MULV_GROUPS = {
    "latent_dim": "latent.dim",
    "twin_latents": "latent.twins",
    "spread": "latent.covariance",
    "normalise_latent": "latent.normalise",
    "elbo_weight": "elbo.weight",
    "future": "elbo.future",
    "predict_changes": "elbo.predict_changes",
    "decoder_depth": "elbo.decoder_depth",
    "posterior": "elbo.posterior",
    "kl_weight": "elbo.kl_weight",
    "kl_balance": "elbo.kl_balance",
    "free_nats": "elbo.free_nats",
    "representation_updates": "elbo.updates",
    "family": "critic.family",
    "features": "critic.features",
    "lengthscale": "critic.lengthscale",
    "train_frequencies": "critic.train_frequencies",
    "noise_samples": "critic.samples",
    "critic_trains_representation": "critic.trains_representation",
    "target_entropy_per_action": "policy.target_entropy_per_action",
    "discrete_entropy": "discrete_policy.entropy_share",
    "exploration_rate": "discrete_policy.exploration_rate",
    "bonus_scale": "bonus.scale",
    "bonus_use": "bonus.use",
    "bonus_limit": "bonus.limit",
    "bonus_form": "bonus.form",
    "bonus_half_life": "bonus.half_life",
    "bonus_regularisation": "bonus.regularisation",
    "bonus_rebuild": "bonus.rebuild",
    "bonus_rows": "bonus.rows",
    "bonus_memory": "bonus.memory",
    "bonus_directions": "bonus.directions",
}
# Fields that exist only in some kinds of a group; for other kinds they are dropped.
ONLY_IN = {
    "latent": {"gaussian": {"covariance", "normalise"}},
    "critic": {
        "closed_form": {"family", "features", "lengthscale", "train_frequencies", "ridge"},
        "monte_carlo": {"family", "features", "lengthscale", "train_frequencies", "ridge", "samples"},
        "deep": {"samples"},
    },
    "policy": {"sac": {"initial_temperature", "target_entropy_per_action"}, "ddpg": {"noise"}},
    "discrete_policy": {"soft": {"initial_temperature", "entropy_share"}, "greedy": {"exploration_rate"}},
}
# Old configurations always held an image group, even for vector tasks; these were its defaults.
USUAL_IMAGE = {
    "embedding_dim": 32,
    "channels": 16,
    "batch_size": 16,
    "pretraining": 1000,
    "every": 4,
    "refreshed": 8,
    "learning_rate": 1e-3,
    "kl_weight": 1.0,
    "pad": 0,
    "centred": False,
    "drawn": 64,
}
NOISE = ("initial", "final", "steps", "clip")
RENAMED = {"noise_octaves": "pink_noise_octaves"}
RENAMED_OF_RUN = {"visits": "latent_projection"}
UNUSED = {"elbo": {"hidden_rewards": 0.0}}  # options that are gone, at the values that left them off


def migrate(saved: Tree) -> Tree:
    """A saved configuration under the present names; one that already has them is returned unchanged."""
    tree = {RENAMED_OF_RUN.get(name, name): value for name, value in saved.items()}
    agent = tree.get("agent")
    if not isinstance(agent, dict):
        return tree
    agent = {RENAMED.get(name, name): value for name, value in agent.items()}
    if "clipped_double_q" in agent:
        agent["double_q"] = "lower" if agent.pop("clipped_double_q") else "mean"
    algo = tree.get("algo", "mulv")
    if algo == "mulv" and _is_flat(agent):
        agent = _grouped(agent)
    elif algo == "drqv2":
        noise = _taken(agent, {f"noise_{name}": name for name in NOISE})
        agent = agent | ({"noise": noise} if noise else {})
    for group, options in UNUSED.items():
        if isinstance(fields := agent.get(group), dict):
            agent[group] = {
                name: value for name, value in fields.items() if (name, value) not in options.items()
            }
    return tree | {"agent": agent}


def _is_flat(agent: Tree) -> bool:
    kinds = [agent[name] for name in ("latent", "critic", "planner", "discrete_policy") if name in agent]
    return all(isinstance(kind, str) for kind in kinds) and (
        bool(kinds) or any(name in agent for name in MULV_GROUPS)
    )


def _grouped(flat: Tree) -> Tree:
    flat = dict(flat)
    groups: dict[str, Tree] = {
        "latent": {"kind": flat.pop("latent", "gaussian")},
        "elbo": {},
        "critic": {"kind": flat.pop("critic", "closed_form")},
        "policy": {"kind": flat.pop("planner", "sac")},
        "discrete_policy": {"kind": flat.pop("discrete_policy", "soft")},
        "bonus": {},
    }
    if (ridge := flat.pop("ridge", 1e-3)) is not None and flat.pop("solver", "sgd") == "ridge":
        groups["critic"]["ridge"] = ridge
    if "initial_temperature" in flat:
        temperature = flat.pop("initial_temperature")
        groups["policy"]["initial_temperature"] = temperature
        groups["discrete_policy"]["initial_temperature"] = temperature
    if noise := _taken(flat, {f"noise_{name}": name for name in NOISE}):
        groups["policy"]["noise"] = noise
    for name in [name for name in flat if name in MULV_GROUPS]:
        group, _, field = MULV_GROUPS[name].partition(".")
        groups[group][field] = flat.pop(name)
    for group, kinds in ONLY_IN.items():
        kind = groups[group]["kind"]
        elsewhere = set().union(*kinds.values()) - kinds.get(kind, set())
        groups[group] = {name: value for name, value in groups[group].items() if name not in elsewhere}
    bonus = groups.pop("bonus")
    if isinstance(image := flat.get("image"), dict) and USUAL_IMAGE | image == USUAL_IMAGE:
        flat["image"] = None
    return flat | groups | {"bonus": bonus if bonus.get("scale") else None}


def _taken(tree: Tree, names: dict[str, str]) -> Tree:
    """Remove the old names from `tree`, and return their values under the new names."""
    return {new: tree.pop(old) for old, new in names.items() if old in tree}

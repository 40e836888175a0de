"""`mulv theory check`: does the theory apply to a POMDP, and do its claims hold there?"""

from dataclasses import dataclass

import numpy as np

from mulv.core.errors import MulvError
from mulv.tabular.linear_q import backup_residual, linear_q_residual, window_value_gap
from mulv.tabular.moment_matching import moment_matching_error
from mulv.tabular.observability import observability
from mulv.tabular.policies import belief_policy, window_policy
from mulv.tabular.pomdp import POMDP
from mulv.tabular.structure import DECODABLE, decodability_gap, smallest_window
from mulv.tabular.windows import enumerate_histories

MATCHES = 1e-12
LINEAR = 1e-10


@dataclass(frozen=True)
class Finding:
    """One line of the table."""

    what: str
    value: str
    passed: bool | None  # None: there is nothing to pass
    reference: str = ""


@dataclass(frozen=True)
class Report:
    """What was found, as numbers and as lines. γ is None where its search did not end."""

    L: int
    horizon: int
    decodable: bool
    gamma: float | None
    moment_matching_error: float
    linear_q_residual: float
    findings: tuple[Finding, ...]

    def summary(self) -> dict[str, bool | int | float | None]:
        """What `--json` prints."""
        return {
            "decodable": self.decodable,
            "L": self.L,
            "gamma": self.gamma,
            "moment_matching_error": self.moment_matching_error,
            "linear_q_residual": self.linear_q_residual,
        }

    def table(self) -> list[str]:
        """A line a finding, aligned."""
        what, value = (max(len(getattr(f, column)) for f in self.findings) for column in ("what", "value"))
        verdict = {True: "pass", False: "FAIL", None: ""}
        return [
            f"{f.what:{what}}  {f.value:>{value}}  {verdict[f.passed]:4}  {f.reference}".rstrip()
            for f in self.findings
        ]


def check(pomdp: POMDP, L: int, horizon: int | None = None, seed: int = 0) -> Report:
    """Every claim on one POMDP, for random policies drawn from `seed`, over `horizon` decisions.

    The horizon is the POMDP's own unless told, or 2L + 1. With fewer than 2L decisions no claim is tried
    where windows leave something out, and the table says so.
    """
    horizon = horizon or pomdp.horizon or 2 * L + 1
    histories = enumerate_histories(pomdp, L, horizon)
    acts, believes = (draw(histories, np.random.default_rng(seed)) for draw in (window_policy, belief_policy))
    gap = decodability_gap(histories)
    decodable = gap <= DECODABLE
    smallest = smallest_window(pomdp, horizon, L) if decodable else None
    gamma = _gamma(pomdp)
    matching = max(moment_matching_error(histories, believes, h, latent="decoded") for h in range(horizon))
    told_states = max(moment_matching_error(histories, acts, h, latent="states") for h in range(horizon))
    values = window_value_gap(histories, acts)
    one_step, residual = backup_residual(histories, acts, 1), linear_q_residual(histories, acts)
    sizes = f"{pomdp.states}, {pomdp.actions}, {pomdp.observations}"
    few = "" if horizon >= 2 * L else f"fewer than 2L = {2 * L}: claims are hardly tried"
    findings = (
        Finding("states, actions, observations", sizes, None),
        Finding("decisions", str(horizon), None, few),
        _judged(f"{L}-decodable: gap between beliefs", gap, DECODABLE, "Definition, L-decodability"),
        Finding("smallest L that decodes", str(smallest or f"> {L}"), None),
        Finding(
            "observable: γ",
            "unknown" if gamma is None else f"{gamma:.4f}",
            None if gamma is None else gamma > 0,
            "Definition, γ-observability",
        ),
        _judged("Q over windows: gap", values, LINEAR, "belief elimination, eq. obs_bellman"),
        _judged("moment matching, told the states", told_states, MATCHES, "Definition, moment matching"),
        _judged("moment matching error", matching, MATCHES, "the same, told what windows decode to"),
        Finding("residual of one step", f"{one_step:.1e}", None, "x_{h+1} overlaps x_h: nothing is claimed"),
        _judged(f"linear-Q residual, {L} steps", residual, LINEAR, "eqs. linear_first and linear_second"),
    )
    return Report(L, horizon, decodable, gamma, matching, residual, findings)


def _judged(what: str, error: float, bound: float, reference: str) -> Finding:
    return Finding(what, f"{error:.1e}", error <= bound, reference)


def _gamma(pomdp: POMDP) -> float | None:
    try:
        return observability(pomdp).gamma
    except MulvError:  # too many states to search
        return None

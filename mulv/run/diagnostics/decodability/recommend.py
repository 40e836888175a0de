"""Recommends a window length from a measurement."""

from dataclasses import dataclass

from mulv.run.diagnostics.decodability.measure import Measurement
from mulv.run.diagnostics.decodability.scores import Score

MARGIN = 0.02  # an R² this close to the best counts as equally good
DECODED = 0.9  # an entry whose best R² is below counts as not decodable


@dataclass(frozen=True)
class Recommendation:
    """The shortest window that is as good as any memory, and the reasons."""

    window: int | None  # None: the GRU is better than all windows by more than the margin
    by_mean: int | None  # the shortest window if only the mean R² over hidden entries counted
    reason: str | None  # the entry that needs a longer window than `by_mean`
    best_window: int  # the window with the best mean R²
    decodable: bool  # whether some window reaches an R² of DECODED for every entry
    unread: dict[str, float]  # entries that are not decodable, with their best R² of all windows
    gru_gain: dict[str, float] | None  # R² of the GRU minus that of the best window: mean, worst
    reward_window: int | None  # the shortest window that predicts the reward of the last step


def recommend(found: Measurement) -> Recommendation:
    """The smallest L whose mean and worst R² lie within MARGIN of the best of all windows and the GRU."""
    windows = found.windows
    memories = [*windows.values(), *([found.gru] if found.gru is not None else [])]
    best_mean, best_worst = (max(getattr(m, name).r2 for m in memories) for name in ("mean", "worst"))

    def good_mean(score: Score) -> bool:
        return score.mean.r2 >= best_mean - MARGIN

    def good(score: Score) -> bool:
        return good_mean(score) and score.worst.r2 >= best_worst - MARGIN

    by_mean = next((L for L, score in windows.items() if good_mean(score)), None)
    window = next((L for L, score in windows.items() if good(score)), None)
    reason = None
    if by_mean is not None and window != by_mean:
        reason = found.names[windows[by_mean].worst_entry]
    best = {
        name: max(score.entries[i].r2 for score in windows.values()) for i, name in enumerate(found.names)
    }
    unread = {name: r2 for name, r2 in best.items() if r2 < DECODED}
    gain = None
    if found.gru is not None:
        gain = {
            name: getattr(found.gru, name).r2 - max(getattr(s, name).r2 for s in windows.values())
            for name in ("mean", "worst")
        }
    return Recommendation(
        window=window,
        by_mean=by_mean,
        reason=reason,
        best_window=max(windows, key=lambda L: windows[L].mean.r2),
        decodable=not unread,
        unread=unread,
        gru_gain=gain,
        reward_window=_reward_window(found),
    )


def _reward_window(found: Measurement) -> int | None:
    """The smallest L whose R² of the reward is within MARGIN of the best; None if no window is."""
    reached = {L: s.reward.r2 for L, s in found.windows.items() if s.reward is not None}
    of_gru = [found.gru.reward.r2] if found.gru is not None and found.gru.reward is not None else []
    if not reached:
        return None
    best = max([*reached.values(), *of_gru])
    return next((L for L, r2 in reached.items() if r2 >= best - MARGIN), None)


def sentences(found: Measurement, advice: Recommendation) -> list[str]:
    """The recommendation as lines of text."""
    longest = max(found.windows)
    if advice.window is not None:
        lines = [f"recommended: a window of {advice.window}, within {MARGIN:g} of the best R²"]
    else:
        lines = [
            f"recommended: a recurrent memory; no window up to {longest} comes within {MARGIN:g} of its R² "
            f"(the best of them is {advice.best_window})"
        ]
    if advice.reason is not None:
        asks = "a GRU" if advice.window is None else str(advice.window)
        lines.append(f"by the mean alone {advice.by_mean} would do; {advice.reason} asks for {asks}")
    if advice.unread:
        entries = ", ".join(f"{name} ({r2:.2f})" for name, r2 in advice.unread.items())
        lines.append(f"not decodable by windows up to {longest}: R² stays below {DECODED:g} for {entries}")
    if advice.gru_gain is not None:
        mean, worst = advice.gru_gain["mean"], advice.gru_gain["worst"]
        adds = "adds" if max(mean, worst) > MARGIN else "adds nothing"
        lines.append(f"a GRU {adds}: {mean:+.3f} to the best mean, {worst:+.3f} to the best worst entry")
    if max(score.worst.r2 for score in found.windows.values()) > found.windows[longest].worst.r2 + MARGIN:
        lines.append(
            f"L = {longest} has a lower R² than a shorter window, though it holds all of it: the regression "
            "has too little data there; more --decisions help"
        )
    if advice.reward_window is not None and advice.reward_window > (advice.window or longest):
        lines.append(f"the reward of the last step asks for {advice.reward_window}")
    if found.constant:
        lines.append(f"constant in these data, so left out: {', '.join(found.constant)}")
    if next(iter(found.windows.values())).reward is None:
        lines.append("the reward is constant in these data, so left out")
    return lines

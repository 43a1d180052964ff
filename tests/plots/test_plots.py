import datetime as dt
import io
import sys

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from tabweave import MCA, UNTIE, Counts, Weave, plots
from tabweave.embed.hierarchy import Tree
from tabweave.tasks.drift import drift_report

RANKS = [2.7, 4.1, 3.54, 5.9]
NAMES = ["UNTIE", "Couplings", "CDE", "COS"]
SETS = ["zoo", "car"]
DAYS = [Counts.of({"color": ["red", "blue"] * 40}), Counts.of({"color": ["red"] * 40})]
STRENGTH = np.array([[1, 0.9, 0, 0.1], [0.9, 1, 0, 0], [0, 0, 1, 0.4], [0.1, 0, 0.4, 1]])
WEIGHTS = {
    "color": {"intra/poly1": 0.2, "inter/poly1": 0.5},
    "size": {"inter/poly1": 0.8},
    "id": {},
}


def curve(n=30):
    return np.arange(n) / n, np.sort(np.random.default_rng(0).normal(size=n))


DRAWINGS = {
    "cd_diagram": lambda **ax: plots.cd_diagram(RANKS, NAMES, 1.7, **ax),
    "column_weights": lambda **ax: plots.column_weights(WEIGHTS, **ax),
    "convergence": lambda **ax: plots.convergence([3.0, 2.0, 1.9], **ax),
    "coupling_graph": lambda **ax: plots.coupling_graph(STRENGTH, list("abcd"), **ax),
    "dendrogram": lambda **ax: plots.dendrogram(Tree.of({"x": ["a", "b"], "y": ["c"]}), **ax),
    "drift": lambda **ax: plots.drift(drift_report(*DAYS), **ax),
    "reliability_diagram": lambda **ax: plots.reliability_diagram(
        [True, False, True, True], {"ours": [0.9, 0.2, 0.7, 0.6], "theirs": [0.5] * 4}, **ax
    ),
    "epsilon_gamma_curve": lambda **ax: plots.epsilon_gamma_curve(
        {"ours": curve(), "theirs": curve()}, **ax
    ),
    "indicator_density": lambda **ax: plots.indicator_density({"zoo": curve()[1]}, **ax),
    "precision_curve": lambda **ax: plots.precision_curve([1, 2, 3], {"ours": [1, 0.5, 0.4]}, **ax),
    "scatter_map": lambda **ax: plots.scatter_map(
        np.random.default_rng(0).normal(size=(9, 2)), list("aabbccaab"), **ax
    ),
    "score_bars": lambda **ax: plots.score_bars({"ours": [1, 2], "theirs": [2, 3]}, SETS, **ax),
    "sensitivity": lambda **ax: plots.sensitivity([1, 2], {"zoo": [0.7, 0.9]}, **ax),
    "time_cost": lambda **ax: plots.time_cost([10, 100], {"ours": [1.0, 2.0]}, **ax),
    "value_heatmap": lambda **ax: plots.value_heatmap(1 - np.eye(3), ["x", "y", "z"], **ax),
    "weights_heatmap": lambda **ax: plots.weights_heatmap(WEIGHTS, **ax),
}
ALL = sorted(DRAWINGS)


def draw(name, ax=None):
    return DRAWINGS[name](ax=ax)


def test_these_are_public():
    assert set(ALL) <= set(plots.__all__)


@pytest.mark.parametrize("name", ALL)
def test_draws_on_its_own_figure_and_can_be_saved(name):
    ax = draw(name)
    ax.figure.savefig(buffer := io.BytesIO(), format="png", dpi=40)
    assert buffer.getvalue().startswith(b"\x89PNG")
    if "matplotlib.pyplot" in sys.modules:
        assert sys.modules["matplotlib.pyplot"].get_fignums() == []


@pytest.mark.parametrize("name", ALL)
def test_draws_on_the_axes_it_is_given(name):
    ax = Figure().subplots()
    assert draw(name, ax) is ax
    assert ax.has_data()


def texts(ax):
    return {text.get_text(): text for text in ax.texts}


def bars(ax):
    return [tuple(line.get_xdata()) for line in ax.lines if line.get_linewidth() == 4]


def test_cd_diagram_names_each_method_with_the_best_half_at_left():
    shown = texts(draw("cd_diagram"))
    assert set(shown) == {
        "CD = 1.70", "UNTIE 2.70", "CDE 3.54", "Couplings 4.10", "COS 5.90",
    }  # fmt: skip
    left = [name for name, text in shown.items() if text.get_ha() == "right"]
    assert left == ["UNTIE 2.70", "CDE 3.54"]


def test_cd_diagram_joins_exactly_the_methods_that_do_not_differ():
    # 2.7 to 4.1 lie within 1.7, 4.1 to 5.9 do not; the run 3.54 to 4.1 is part of the first.
    assert bars(draw("cd_diagram")) == [(2.7, 4.1)]
    overlapping = plots.cd_diagram([1, 2, 3, 4], list("abcd"), 1.5)
    assert bars(overlapping) == [(1, 2), (2, 3), (3, 4)]
    assert bars(plots.cd_diagram([1, 2, 3], list("abc"), 1.0)) == []  # at the CD they differ
    assert bars(plots.cd_diagram([1, 2, 3], list("abc"), 5.0)) == [(1, 3)]


def test_cd_diagram_of_a_control_marks_its_interval():
    ax = plots.cd_diagram(RANKS, NAMES, 1.0, control=2)
    assert bars(ax) == [pytest.approx((2.54, 4.0))]  # cut at the worst possible rank, 4


def test_cd_scale_is_as_long_as_the_difference():
    (scale,) = [line for line in draw("cd_diagram").lines if line.get_marker() == "|"]
    assert np.ptp(scale.get_xdata()) == pytest.approx(1.7)


def test_leaders_do_not_cross():
    ax = plots.cd_diagram([1, 2, 3, 4, 5], list("abcde"), 0.5)
    leaders = [line for line in ax.lines if len(line.get_xdata()) == 3]
    drops = {line.get_xdata()[0]: line.get_ydata()[1] for line in leaders}
    assert drops[1] > drops[2] > drops[3]
    assert drops[5] > drops[4]


def test_lines_differ_in_more_than_colour():
    ax = plots.precision_curve([1, 2], {str(i): [i, i] for i in range(12)})
    looks = {(line.get_marker(), str(line._unscaled_dash_pattern)) for line in ax.lines}
    assert len(looks) == 12
    assert len({(line.get_marker(), line.get_color()) for line in ax.lines}) == 12


# Machado, Oliveira and Fernandes (2009): what the colour-blind see, of linear red, green and blue.
SEEN = {
    "all": np.eye(3),
    "no red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
               [-0.003882, -0.048116, 1.051998]],
    "no green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                 [-0.011820, 0.042940, 0.968881]],
    "no blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                [0.004733, 0.691367, 0.303900]],
}  # fmt: skip


def lab(colours, sight):
    """CIE L*a*b* of colours as somebody sees them."""
    srgb = np.array([[int(c[i : i + 2], 16) / 255 for i in (1, 3, 5)] for c in colours])
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    linear = np.clip(linear @ np.transpose(SEEN[sight]), 0, 1)
    xyz = linear @ np.array([[0.4124564, 0.2126729, 0.0193339], [0.3575761, 0.7151522, 0.119192],
                             [0.1804375, 0.072175, 0.9503041]]) / [0.95047, 1, 1.08883]  # fmt: skip
    f = np.where(xyz > 0.008856, np.cbrt(np.maximum(xyz, 1e-9)), 7.787 * xyz + 16 / 116)
    return np.column_stack(
        [116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])]
    )


def pages():
    """The colours of classes and numbers of the pages, in both themes."""
    import re
    from importlib.resources import files

    text = (files("tabweave.apps.report") / "static" / "style.css").read_text("utf-8")
    found = [dict(re.findall(r"--([cs]\d): (#\w{6})", block)) for block in
             re.findall(r":root, :host \{(.*?)\}", text, re.S)]  # fmt: skip
    return [[theme[f"{k}{i}"] for i in range(n)] for theme in found for k, n in ("c8", "s5")
            for n in [int(n)]]  # fmt: skip


def test_there_is_one_palette():
    from tabweave.plots import QUALITATIVE, SEQUENTIAL

    classes, numbers, _, _ = pages()
    assert (tuple(classes), tuple(numbers)) == (QUALITATIVE, SEQUENTIAL)


@pytest.mark.parametrize("sight", SEEN)
@pytest.mark.parametrize("theme", [0, 2])
def test_classes_differ_for_the_colour_blind(theme, sight):
    seen = lab(pages()[theme], sight)
    apart = np.linalg.norm(seen[:, None] - seen, axis=2)[np.triu_indices(8, 1)]
    assert apart.min() > 15  # viridis has 7.6 between neighbours of 16 classes, for anybody


def test_sixteen_classes_have_different_colours():
    from tabweave.plots import QUALITATIVE, colours

    assert len(set(colours(16))) == 16 and tuple(colours(8)) == QUALITATIVE
    seen = lab(colours(16), "all")
    assert np.linalg.norm(seen[:, None] - seen, axis=2)[np.triu_indices(16, 1)].min() > 8


def test_numbers_get_shades_and_one_unit_is_one_unit():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(40, 2)) * [10, 1]
    ax = plots.scatter_map(points, rng.normal(size=40))
    ax.figure.draw_without_rendering()
    assert ax.get_legend() is None and len(ax.figure.axes) == 2
    for drawn in (ax, plots.scatter_map(points, list("ab") * 20)):
        drawn.figure.draw_without_rendering()
        (x0, y0), (x1, y1) = drawn.transData.transform([(0, 0), (1, 1)])
        assert x1 - x0 == pytest.approx(y1 - y0, rel=0.01)


@pytest.mark.parametrize("name", ALL)
def test_pictures_show_themselves(name):
    import copy
    import pickle

    ax = draw(name)
    assert ax._repr_png_().startswith(b"\x89PNG")
    assert pickle.loads(pickle.dumps(ax.figure)).axes and copy.deepcopy(ax.figure).axes


@pytest.mark.parametrize("name", ["precision_curve", "epsilon_gamma_curve", "score_bars"])
def test_legends_cover_nothing(name):
    ax = draw(name)
    ax.figure.draw_without_rendering()
    assert ax.get_legend().get_window_extent().x0 >= ax.get_window_extent().x1 - 1


def test_whole_things_have_whole_ticks():
    for ax in (plots.precision_curve([1, 2, 3], {"a": [1, 2, 3]}), plots.convergence([3, 2])):
        ax.figure.draw_without_rendering()
        assert all(tick == int(tick) for tick in ax.get_xticks())


def test_drift_is_on_a_log_axis_and_says_what_is_certain():
    from tabweave import Counts
    from tabweave.tasks.drift import drift_report

    rng = np.random.default_rng(0)
    days = [
        Counts.of({"moved": rng.choice(list("ab"), 500, p=[p, 1 - p]), "same": list("xy") * 250})
        for p in (0.5, 0.9)
    ]
    ax = plots.drift(drift_report(*days))
    assert ax.get_xscale() == "symlog"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["changed", "may be chance"]
    assert [text.get_text() for text in ax.texts] == ["p = 0.002"]


def test_like_values_stand_side_by_side():
    distances = np.array([[0, 9, 1, 9], [9, 0, 9, 1], [1, 9, 0, 9], [9, 1, 9, 0.0]])
    shown = [t.get_text() for t in plots.value_heatmap(distances, "abcd").get_xticklabels()]
    assert abs(shown.index("a") - shown.index("c")) == abs(shown.index("b") - shown.index("d")) == 1


def test_curves_hold_the_data():
    ax = plots.precision_curve([1, 5], {"p": [0.9, 0.4]}, ylabel="recall@k")
    np.testing.assert_array_equal(ax.lines[0].get_xydata(), [[1, 0.9], [5, 0.4]])
    assert ax.get_ylabel() == "recall@k"
    assert draw("epsilon_gamma_curve").get_ylim()[0] == 0
    low = plots.epsilon_gamma_curve({"a": ([0, 0.5], [-1.0, 1.0])}, nonnegative=False)
    assert low.get_ylim()[0] < -1


def test_scatter_groups_by_label_in_natural_order():
    points = np.arange(8.0).reshape(4, 2)
    ax = plots.scatter_map(points, [10, 2, 10, 2])
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["2", "10"]
    np.testing.assert_array_equal(ax.collections[1].get_offsets(), points[[0, 2]])
    paths = [c.get_paths()[0].vertices.shape for c in ax.collections]
    assert paths[0] != paths[1]
    mixed = plots.scatter_map(points, ["b", 1, "b", 1])
    assert [t.get_text() for t in mixed.get_legend().get_texts()] == ["1", "b"]


def test_a_map_of_hundreds_of_classes_names_the_eight_largest():
    rng = np.random.default_rng(0)
    labels = np.repeat([f"a very long name of the class number {i}" for i in range(300)], 3)
    labels = [*labels, *np.repeat(list("abcdefgh"), 50), None, None]
    ax = plots.scatter_map(rng.normal(size=(len(labels), 2)), labels)
    names = [t.get_text() for t in ax.get_legend().get_texts()]
    assert names == [*"abcdefgh", "300 others", "missing"]
    assert sum(len(dots.get_offsets()) for dots in ax.collections) == len(labels)
    plots.scatter_map(rng.normal(size=(900, 2)), labels[:900])
    ax.figure.draw_without_rendering()
    assert ax.get_legend().get_window_extent().width < 0.5 * ax.figure.bbox.width


def test_numbers_with_gaps_and_far_ones_have_a_scale_of_most_of_them():
    rng = np.random.default_rng(0)
    delays = [*rng.integers(-20, 120, 995).tolist(), 99_999, None, float("nan"), 40, 41]
    ax = plots.scatter_map(rng.normal(size=(1000, 2)), delays, title="delay")
    bar = ax.collections[-1].colorbar
    assert ax.get_legend() is None and bar.ax.get_ylabel() == "delay, × missing"
    assert bar.vmax < 200 and bar.extend == "both"
    gaps, dots = (len(part.get_offsets()) for part in ax.collections)
    assert (gaps, dots) == (2, 998)


@pytest.mark.parametrize("kind", [dt.date, np.datetime64, pd.Timestamp])
def test_dates_have_a_scale_of_dates(kind):
    days = pd.date_range("2013-01-01", "2013-12-31", periods=200)
    labels = [kind(d.year, d.month, d.day) if kind is dt.date else kind(d) for d in days]
    ax = plots.scatter_map(np.random.default_rng(0).normal(size=(201, 2)), [*labels, None])
    ax.figure.draw_without_rendering()
    ticks = [t.get_text() for t in ax.figure.axes[1].get_yticklabels()]
    assert {"Mar", "Jun"} & set(ticks) or "Apr" in ticks


def test_many_dots_are_smaller_and_paler():
    rng = np.random.default_rng(0)
    few, many = (
        plots.scatter_map(rng.normal(size=(n, 2)), list("ab") * (n // 2)).collections[0]
        for n in (100, 20_000)
    )
    assert few.get_alpha() == 1 and many.get_alpha() < 0.5
    assert many.get_sizes()[0] < few.get_sizes()[0] / 3


def test_heatmap_writes_on_dark_in_white_and_only_small_tables():
    ax = draw("value_heatmap")
    assert {t.get_text(): t.get_color() for t in ax.texts} == {"0": "black", "1": "white"}
    assert [t.get_text() for t in ax.get_xticklabels()] == ["x", "y", "z"]
    assert not plots.value_heatmap(1 - np.eye(13), range(13)).texts
    same = plots.value_heatmap(np.zeros((2, 2)), "ab")
    same.figure.savefig(io.BytesIO(), format="png", dpi=40)


def test_weights_are_columns_by_couplings_and_gaps_stay_white():
    ax = draw("weights_heatmap")
    shown = np.ma.filled(ax.images[0].get_array(), np.nan)
    rows = {t.get_text(): row for t, row in zip(ax.get_yticklabels(), shown, strict=True)}
    expected = {"color": [0.2, 0.5], "size": [np.nan, 0.8], "id": [np.nan, np.nan]}
    np.testing.assert_array_equal([rows[name] for name in expected], list(expected.values()))
    assert [t.get_text() for t in ax.get_xticklabels()] == ["intra/poly1", "inter/poly1"]


def test_column_weights_add_up_couplings():
    ax = draw("column_weights")
    assert [bar.get_width() for bar in ax.patches] == pytest.approx([0.7, 0.8, 0])
    assert [t.get_text() for t in ax.get_yticklabels()] == ["color", "size", "id"]
    assert ax.yaxis_inverted()
    plain = plots.column_weights({"a": 1.5, "b": 0.5})
    assert [bar.get_width() for bar in plain.patches] == [1.5, 0.5]


def test_convergence_counts_from_one_and_names_several():
    ax = draw("convergence")
    np.testing.assert_array_equal(ax.lines[0].get_xydata(), [[1, 3], [2, 2], [3, 1.9]])
    assert ax.get_legend() is None
    both = plots.convergence({"a": [2, 1], "b": [3, 1, 0]})
    assert [t.get_text() for t in both.get_legend().get_texts()] == ["a", "b"]


def test_pictures_of_fitted_embedders():
    rows = {"a": list("uvuv"), "b": list("xxyy")}
    untie = UNTIE(2).fit(rows)
    assert plots.weights_heatmap(untie.weights_).images[0].get_array().shape[0] == 2
    assert len(plots.column_weights(Weave().fit(rows).weights_).patches) == 2
    assert plots.convergence(untie.objective_).lines


def test_coupling_graph_draws_a_line_per_coupling_between_neighbours():
    ax = draw("coupling_graph")
    assert len(ax.lines) == 3  # zeros have none
    thick = max(ax.lines, key=lambda line: line.get_linewidth())
    ends = {tuple(thick.get_xydata()[i].round(6)) for i in (0, -1)}
    places = dict(zip("abcd", ax.collections[0].get_offsets().round(6).tolist(), strict=True))
    assert ends == {tuple(places["a"]), tuple(places["b"])}
    # Strongly coupled columns stand side by side: a quarter of the circle apart.
    assert np.linalg.norm(np.subtract(places["a"], places["b"])) == pytest.approx(2**0.5, abs=1e-5)
    assert np.linalg.norm(np.subtract(places["c"], places["d"])) == pytest.approx(2**0.5, abs=1e-5)
    assert len(plots.coupling_graph(STRENGTH, list("abcd"), max_lines=1).lines) == 1
    assert not plots.coupling_graph(np.zeros((2, 2)), list("ab")).lines


def test_time_cost_compares_with_linear_growth():
    ax = plots.time_cost([10, 1000], {"ours": [0.5, 1.0], "theirs": [2.0, 9.0]})
    np.testing.assert_allclose(ax.lines[-1].get_ydata(), [0.5, 50])
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")


def test_sensitivity_has_a_band_of_one_deviation():
    ax = plots.sensitivity([1, 2], {"a": [5, 6], "b": [1, 1]}, errors={"a": [1, 2]})
    (band,) = ax.collections
    reach = band.get_paths()[0].vertices
    assert (reach[:, 1].min(), reach[:, 1].max()) == (4, 8)


def test_bars_stand_side_by_side_and_differ_in_hatch():
    ax = plots.score_bars(
        {"ours": [1, np.nan], "theirs": [2, 3]}, SETS, errors={"ours": [0.1, 0.1], "theirs": [0, 0]}
    )
    ours, theirs = ax.containers[1].patches, ax.containers[3].patches
    assert ours[0].get_x() + ours[0].get_width() == pytest.approx(theirs[0].get_x())
    assert ours[0].get_hatch() != theirs[0].get_hatch()
    assert np.isnan(ours[1].get_height())


def test_density_is_one():
    ax = plots.indicator_density({"a": np.random.default_rng(0).normal(size=200)})
    assert np.trapezoid(*ax.lines[0].get_xydata().T[::-1]) == pytest.approx(1, abs=0.01)


def test_bad_input():
    with pytest.raises(ValueError, match=r"expected 1 × 1 strengths, got shape \(2, 2\)"):
        plots.coupling_graph(np.eye(2), ["a"])
    with pytest.raises(ValueError, match=r"'ours': expected numbers above 0 .* got 0"):
        plots.time_cost([1, 2], {"ours": [0.0, 1.0]})
    with pytest.raises(ValueError, match="'ours': expected 2 scores, one per data set, got 1"):
        plots.score_bars({"ours": [1]}, SETS)
    with pytest.raises(ValueError, match="no scores"):
        plots.score_bars({}, SETS)
    with pytest.raises(ValueError, match="two different numbers"):
        plots.indicator_density({"a": [1.0, 1.0]})
    with pytest.raises(ValueError, match="no weights to draw"):
        plots.weights_heatmap({"a": {}})
    with pytest.raises(ValueError, match="no weights to draw"):
        plots.column_weights({})
    with pytest.raises(ValueError, match="the trace 'objective' is empty"):
        plots.convergence([])
    with pytest.raises(ValueError, match="3 names for ranks"):
        plots.cd_diagram([1, 2], list("abc"), 1)
    with pytest.raises(ValueError, match="expected a positive cd, got 0"):
        plots.cd_diagram([1, 2], list("ab"), 0)
    with pytest.raises(ValueError, match="expected a control from 0 to 1, got 2"):
        plots.cd_diagram([1, 2], list("ab"), 1, control=2)
    with pytest.raises(ValueError, match="no curves"):
        plots.epsilon_gamma_curve({})
    with pytest.raises(ValueError, match="curve 'p'"):
        plots.precision_curve([1, 2], {"p": [1]})
    with pytest.raises(ValueError, match="reduce them to two"):
        plots.scatter_map(np.zeros((3, 4)), list("abc"))
    with pytest.raises(ValueError, match="expected 2 × 2 distances"):
        plots.value_heatmap(np.zeros((3, 3)), "ab")


@pytest.mark.parametrize("gap", [None, float("nan"), np.float64("nan"), pd.NA])
@pytest.mark.parametrize("known", [("a", "b"), (1.0, 2.0)])
def test_objects_without_a_label_are_drawn_too(gap, known):
    ax = plots.scatter_map([[0, 0], [1, 1], [2, 0], [3, 1]], [known[0], gap, known[1], gap])
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert sorted(names) == sorted([*map(str, known), "missing"])
    assert sum(len(dots.get_offsets()) for dots in ax.collections) == 4


@pytest.mark.parametrize("most", [0, 1, 2])
def test_no_more_couplings_are_drawn_than_asked_for(most):
    strength = [[1, 0.5, 0.2], [0.5, 1, 0.4], [0.2, 0.4, 1]]
    assert len(plots.coupling_graph(strength, list("abc"), max_lines=most).lines) == most


def test_names_are_text_and_every_one_is_in_the_legend():
    """Two dollars were a formula; a class that begins with _ was left out of the legend."""
    names = ["$5 and $6", "_other", "", "$x_{", "plain"]
    points = np.arange(10.0).reshape(5, 2)
    for ax in (plots.scatter_map(points, names), plots.convergence({n: [1, 2] for n in names})):
        texts = [text.get_text() for text in ax.get_legend().get_texts()]
        assert sorted(texts) == sorted(["$5 and $6", " _other", "''", "$x_{", "plain"])
        ax.figure.savefig(io.BytesIO())  # an unfinished formula raised
    for ax in (
        plots.value_heatmap(1 - np.eye(5), names),
        plots.score_bars({"_a": np.ones(5)}, names),
        plots.cd_diagram(np.arange(1.0, 6), names, cd=1),
        plots.coupling_graph(np.eye(5), names),
        plots.column_weights(dict.fromkeys(names, 1.0)),
    ):
        ax.figure.savefig(io.BytesIO())


def test_a_long_legend_is_seen_whole():
    """Of thirty classes the legend was cut, and the plot beside it was a strip."""
    points = np.random.default_rng(0).normal(size=(60, 2))
    for names in ([f"class number {i}" for i in range(30)], ["n" * 40, "m" * 40]):
        for ax in (
            plots.scatter_map(points, np.repeat(names, 60 // len(names))),
            plots.precision_curve([1, 2, 3], {name: [0.1, 0.2, 0.3] for name in names}),
        ):
            ax.figure.savefig(io.BytesIO())
            legend = ax.get_legend().get_window_extent()
            assert legend.y0 >= 0 and legend.y1 <= ax.figure.bbox.y1
            assert legend.x1 <= ax.figure.bbox.x1 + 1
            assert ax.get_window_extent().width > 1.5 * ax.figure.dpi


def test_ranks_that_are_missing_are_refused():
    with pytest.raises(ValueError, match="an average rank of each method"):
        plots.cd_diagram([1, np.nan, 2], list("abc"), cd=0.5)


def test_reliability_is_the_mean_of_bins_of_as_many_rows():
    p = np.arange(1, 101) / 101
    happened = np.random.default_rng(0).random(100) < p
    (line,) = (
        line
        for line in plots.reliability_diagram(happened, {"ours": p}, n_bins=4).lines
        if line.get_label() == "ours"
    )
    quarters = np.split(np.arange(100), 4)
    expected = [[p[rows].mean(), happened[rows].mean()] for rows in quarters]
    np.testing.assert_allclose(line.get_xydata(), expected, atol=1e-9)


def test_names_of_a_biplot_cover_no_other():
    rng = np.random.default_rng(0)
    rows = {f"column {i}": rng.integers(12, size=400).astype(str) for i in range(8)}
    ax = plots.biplot(MCA(2).fit(rows))
    boxes = [text.get_window_extent() for text in ax.texts if text.get_text()]
    frame = ax.get_window_extent()
    assert 10 < len(boxes) < 96 and ax.get_title() == f"{96 - len(boxes)} of 96 names left out"
    for i, box in enumerate(boxes):
        assert frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0
        for other in boxes[:i]:
            across = min(box.x1, other.x1) - max(box.x0, other.x0)
            up = min(box.y1, other.y1) - max(box.y0, other.y0)
            assert min(across, up) < 1e-6


def test_heatmaps_of_many_values_show_some_names_and_spread_their_shades():
    x = np.random.default_rng(0).normal(size=150)
    distances = 10 + np.abs(x[:, None] - x)
    np.fill_diagonal(distances, 0)
    distances[0, 1] = distances[1, 0] = 1e6
    ax = plots.value_heatmap(distances, range(150))
    assert len(ax.get_xticklabels()) == 50
    low, high = ax.images[0].get_clim()
    assert 10 < low < high < 20

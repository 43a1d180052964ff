"""Trees of values: how a distance hierarchy groups what a column says."""

from typing import Any

import numpy as np

from weft.plots._style import axes


def dendrogram(tree: Any, *, max_leaves: int = 100, ax: Any = None) -> Any:
    """Draw a tree of values from the root on the left; lengths are the weights of its edges.

    Parameters
    ----------
    tree : weft.hierarchy.Tree
        E.g. ``DistanceHierarchy().fit(X, y).trees_["color"]``.
    max_leaves : int, default=100
        Trees with more leaves are refused: nobody could read them.
    ax : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from weft.hierarchy import Tree
    >>> from weft.plots import dendrogram
    >>> ax = dendrogram(Tree.of({"Coffee": ["Latte", "Mocha"], "Tea": ["Oolong"]}))
    >>> [text.get_text() for text in ax.texts]
    ['Latte', 'Mocha', 'Oolong']
    """
    leaves = leaves_in_order(tree)
    if len(leaves) > max_leaves:
        raise ValueError(
            f"the tree has {len(leaves)} leaves; draw a part of it, or raise max_leaves"
        )
    height = np.zeros(len(tree))
    height[leaves] = np.arange(len(leaves))[::-1]
    for node in reversed(range(len(tree))):  # children come after their parents
        if tree.children[node]:
            height[node] = height[tree.children[node]].mean()
    ax = axes(ax, (5, float(np.clip(0.28 * len(leaves) + 0.8, 2, 20))))
    for node, below in enumerate(tree.children):
        x = tree.depths[node]
        if below:
            ax.plot([x, x], [height[below].min(), height[below].max()], color="black", lw=1)
        for child in below:
            ax.plot([x, tree.depths[child]], [height[child]] * 2, color="black", lw=1)
    for leaf in leaves:
        place = (float(tree.depths[leaf]), float(height[leaf]))
        ax.annotate(
            str(tree.names[leaf]), place, (4, 0), textcoords="offset points", va="center",
            fontsize="small",
        )  # fmt: skip
    ax.set(yticks=[], xlabel="distance from the root")
    for side in ("top", "left", "right"):
        ax.spines[side].set_visible(False)
    return ax


def leaves_in_order(tree: Any) -> list[int]:
    """Return the leaves as they come from top to bottom."""
    leaves, waiting = [], [0]
    while waiting:
        node = waiting.pop()
        waiting += reversed(tree.children[node])
        if not tree.children[node]:
            leaves.append(node)
    return leaves

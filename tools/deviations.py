"""Collect what each algorithm of ``tabweave.papers`` does otherwise than print into the docs.

Run ``python tools/deviations.py`` after a change of such a paragraph, *Deviations.* in the notes of
a class; a test compares docs/published.md with what this would write.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from tabweave import papers

PAGE = Path(__file__).parents[1] / "docs" / "published.md"
START = "## Every deviation from print\n"
NAMES = (
    "CKML",
    "ValueMetric",
    "NonBEND",
    "HELIC",
    "UNTIE",
    "UNICORN",
    "GBCClassifier",
    "CoCA",
    "HeMap",
)


def deviations(name: str) -> str:
    """The paragraph of a class that says what is not as printed, as Markdown."""
    notes = inspect.getdoc(getattr(papers, name)) or ""
    found = re.search(r"\*Deviations\.\* (.+?)(?:\n\n|$)", notes, re.DOTALL)
    if found is None:
        raise ValueError(
            f"papers.{name}: expected a paragraph *Deviations.* in its notes, got none"
        )
    text = " ".join(found[1].split())
    text = re.sub(r":(?:class|func):`~?(?:tabweave\.)?([^`]+)`", r"`\1`", text)
    return text.replace("``", "`")


OTHERS = {
    "CoupledNumeric(scale=None, standardize=True)": "As printed; a missing number takes the mean "
    "of its powers.",
    'embed.sets.SetTfidf(max_subset=None)` and `KSVD(update="exact")': "As printed, errata "
    "corrected; unused atoms are replaced, and an iteration is not taken if the error would rise.",
    "DistanceHierarchy`, `DRDH` and `WeightedKNN": "As printed, errata corrected; maps are laid "
    "out by openTSNE, whose gradient is approximate; all neighbours at the largest distance vote.",
}


def section() -> str:
    """The section of the page, one item for each class."""
    lines = [f"- **`papers.{name}`.** {deviations(name)}" for name in NAMES]
    lines += [f"- **`{name}`.** {text}" for name, text in OTHERS.items()]
    intro = (
        "Where the letter can be had, a parameter says how; three methods are as printed already."
    )
    return f"{START}\n{intro}\n\n" + "\n".join(lines) + "\n"


def page() -> str:
    """The page with the section as it should be, the others as they are."""
    before, _, after = PAGE.read_text(encoding="utf-8").partition(START)
    _, heading, rest = after.partition("\n## ")
    return f"{before.rstrip()}\n\n{section()}{heading}{rest}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"written to {PAGE}")

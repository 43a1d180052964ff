"""Everything, one step after the other: what was measured stays in the cache, so it can be resumed.

``python benchmarks/run.py`` takes hours and rewrites every report and docs/results.md; ``--quick``
takes minutes and writes nothing. ``--from STEP`` goes on at a step. The time left is estimated from
how long the steps took last time.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time

from _cells import CACHE
from peers import HOME, PYTHON, make_environment

SMALL = "zoo soybean_small hayes_roth lymphography house_votes spect".split()
PEERS = ["--peer-python", str(PYTHON)]
STEPS: dict[str, list[str]] = {
    "speed": [],
    "tasks_speed": PEERS,
    "growth": [],
    "streams": [],
    "accuracy": [],
    "stream_accuracy": [],
    "numeric_accuracy": [],
    "hierarchy_accuracy": [],
    "goodness": [],
    "figures": [],
    "sparse_speed": ["--peers", str(PYTHON)],
    "studies": [],
    "sources_gbc": [],
    "sources_coca": [],
    "sources_hemap": [],
    "index_speed": [],
    "report_speed": [],
    "scale": [],
    "peers": [],
    "arena": [],
    "neighbors_speed": [],
    "nonbend_speed": PEERS,
    "mixed": PEERS,
    "verify": [],
    "results": [],
}
QUICK = {
    "speed": ["--quick"],
    "growth": ["--quick"],
    "studies": ["--quick"],
    "accuracy": ["--quick", "--table", "4.1", "4.5", "5.1", "7.1", "--dataset", *SMALL],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a part, in minutes; writes nothing")
    parser.add_argument("--from", dest="first", choices=list(STEPS), help="go on at this step")
    options = parser.parse_args()
    steps = QUICK if options.quick else STEPS
    names = list(steps)
    names = names[names.index(options.first) :] if options.first else names
    CACHE.mkdir(exist_ok=True)
    if not options.quick:
        make_environment()
    memory = CACHE / ("steps-quick.json" if options.quick else "steps.json")
    known: dict[str, float] = json.loads(memory.read_text()) if memory.exists() else {}
    failed = []
    for i, name in enumerate(names):
        left = [known.get(other) for other in names[i:]]
        shown = f"{sum(s for s in left if s) / 60:.0f} min left" if all(left) else "time unknown"
        print(f"\n=== {name} ({i + 1} of {len(names)}, {shown})", flush=True)
        start = time.perf_counter()
        command = [sys.executable, "-W", "ignore", str(HOME / f"{name}.py"), *steps[name]]
        if subprocess.run(command).returncode:
            failed.append(name)
        known[name] = time.perf_counter() - start
        memory.write_text(json.dumps(known))
    if failed:
        sys.exit(f"failed: {', '.join(failed)}; see above, then go on with --from {failed[0]}")


if __name__ == "__main__":
    main()

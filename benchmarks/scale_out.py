"""Past one machine: Spark with two workers, one of them killed, beside memory and Spark ML.

    python benchmarks/scale_out.py [counts] [fit] [killed] [peers] [noise]

starts a master and two workers on loopback (Java and pyspark are needed), and prints the tables of
``benchmarks/reports/scale-out.md``.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd

import tabweave
from tabweave import KModes, SupervisedWeave, Weave, WeaveClassifier, count
from tabweave.engines import transform

PORT = 17077 + 4 * (os.getpid() % 1000)  # runs beside each other do not meet
WEB = PORT + 8000


def made(n, columns=15, seed=0):
    """Rows of n: categories, numbers with gaps and dates, which depend on a group."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 6, n)
    out = {}
    for j in range(columns):
        if j % 5 == 3:
            x = (rng.normal(size=n) + group * (j % 2)).round(2)
            x[rng.random(n) < 0.05] = np.nan
            out[f"x{j}"] = x
        elif j % 5 == 4:
            minutes = rng.integers(0, 10**6, n)
            out[f"d{j}"] = np.datetime64("2024-01-01") + minutes.astype("timedelta64[m]")
        else:
            labels = np.array([f"{j}-{v}" for v in range(12)], object)
            out[f"c{j}"] = labels[(group * (j + 1) + rng.integers(0, 4, n)) % 12]
    return pd.DataFrame(out)


# -- the cluster ----------------------------------------------------------------------------------


@contextmanager
def cluster():
    """A master, two workers of one core, and a session on them."""
    import pyspark
    from pyspark.sql import SparkSession

    home = Path(pyspark.__file__).parent
    environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}
    environment["PYSPARK_PYTHON"] = os.environ["PYSPARK_PYTHON"] = sys.executable
    folder = tempfile.mkdtemp()
    run = [str(home / "bin" / "spark-class"), "org.apache.spark.deploy."]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment}

    def start(what, *options):
        command = [run[0], run[1] + what, *map(str, options)]
        return subprocess.Popen(command, start_new_session=True, **quiet)

    master = start("master.Master", "-h", "127.0.0.1", "-p", PORT, "--webui-port", PORT + 1)
    time.sleep(8)
    workers = [
        start("worker.Worker", "-h", "127.0.0.1", "-c", 1, "-m", "2g", "-d", f"{folder}/{i}",
              "--webui-port", PORT + 2 + i, f"spark://127.0.0.1:{PORT}")
        for i in range(2)
    ]  # fmt: skip
    session = (
        SparkSession.builder.master(f"spark://127.0.0.1:{PORT}")
        .config("spark.executor.memory", "1500m")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.port", WEB)
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "8")
        .config("spark.sql.files.maxPartitionBytes", str(4 << 20))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    try:
        yield session, workers
    finally:
        session.stop()
        for process in (*workers, master):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)


def stages(session):
    """What Spark says of all stages so far."""
    base = f"{session.sparkContext.uiWebUrl}/api/v1/applications"
    name = session.sparkContext.applicationId
    with urllib.request.urlopen(f"{base}/{name}/stages") as answer:
        return {(s["stageId"], s["attemptId"]): s for s in json.load(answer)}


@contextmanager
def watched(session):
    """Wall time, bytes of results to the driver, and tasks running on average."""
    before, out, start = stages(session), {}, time.time()
    yield out
    out["seconds"] = time.time() - start
    time.sleep(1.5)  # until the last stage is noted
    new = [s for key, s in stages(session).items() if key not in before]
    out["bytes"] = sum(s.get("resultSize", 0) for s in new)
    out["running"] = max(
        (s["executorRunTime"] / 1e3 / duration(s) for s in new if duration(s) > 3), default=0.0
    )


def duration(stage):
    """How long a stage ran, in seconds."""
    times = [
        stage.get(name, "").removesuffix("GMT")
        for name in ("firstTaskLaunchedTime", "completionTime")
    ]
    if not all(times):
        return 0.0
    first, last = (np.datetime64(text) for text in times)
    return float((last - first) / np.timedelta64(1, "s"))


# -- what must be shown ---------------------------------------------------------------------------


def show_counts(session, folder):
    """600,000 mixed rows: the same counts for any order, cut and engine."""
    rows = made(600_000, 5)
    path = folder / "mixed.parquet"
    rows.to_parquet(path, row_group_size=50_000)
    wanted = count(rows)
    shuffled = rows.sample(frac=1, random_state=1)
    cuts = np.array_split(np.arange(len(rows)), [17, 1000, 300_000, 300_001])
    sources = {
        "memory, shuffled": shuffled,
        "memory, sorted by a number": rows.sort_values("x3"),
        "five parts, one of 17 rows": iter([rows.iloc[part] for part in cuts]),
        "Parquet": path,
        "DuckDB SQL": f"SELECT * FROM '{path}' ORDER BY c0",
        "DuckDB, counted by SQL": f"SELECT * FROM '{path}'",
        "Dask, 9 partitions": __import__("dask.dataframe").dataframe.from_pandas(
            rows, npartitions=9
        ),
        "Spark": session.read.parquet(str(path)),
        "Spark, shuffled into 11": session.read.parquet(str(path)).repartition(11),
    }
    print("\n| 600,000 mixed rows from | equal counts | s |\n|---|---|---|")
    for name, source in sources.items():
        start = time.time()
        engine = {"engine": "pushdown"} if "counted by SQL" in name else {}
        equal = count(source, **engine) == wanted
        print(f"| {name} | {equal} | {time.time() - start:.1f} |", flush=True)


def show_fit(session, folder):
    """Bytes to the driver for Weave.fit, as rows grow."""
    print("\n| rows × 15 | seconds | bytes to the driver | tasks running |\n|---|---|---|---|")
    for n in (200_000, 1_000_000, 5_000_000):
        path = folder / f"fit-{n}"
        path.mkdir()
        for i in range(0, n, 200_000):
            made(200_000, seed=i).to_parquet(path / f"{i:08}.parquet")
        with watched(session) as figures:
            Weave().fit(session.read.parquet(str(path)))
        print(
            f"| {n:,} | {figures['seconds']:.0f} | {figures['bytes'] / 1e6:.1f} MB | "
            f"{figures['running']:.2f} |",
            flush=True,
        )


def show_peers(session, folder):
    """Beside Spark ML: indexer, one-hot and k-means of the same rows, in the same run."""
    from pyspark.ml import Pipeline
    from pyspark.ml.clustering import KMeans
    from pyspark.ml.feature import OneHotEncoder, StringIndexer, VectorAssembler
    from sklearn.metrics import normalized_mutual_info_score

    path = folder / "peers.parquet"
    rows = made(300_000)[[f"c{j}" for j in (0, 1, 2, 5, 6, 7)]]
    rows.to_parquet(path, row_group_size=50_000)
    frame, names = session.read.parquet(str(path)), list(rows)
    coded, sparse = [f"{n}_i" for n in names], [f"{n}_v" for n in names]
    peer = Pipeline(
        stages=[
            StringIndexer(inputCols=names, outputCols=coded),
            OneHotEncoder(inputCols=coded, outputCols=sparse),
            VectorAssembler(inputCols=sparse, outputCol="features"),
            KMeans(k=6, seed=0, maxIter=10),
        ]
    )
    group = made_group(300_000)
    print("\n| 300,000 × 6 categories, 6 clusters | s | NMI with the group |\n|---|---|---|")

    def line(name, found):
        score = normalized_mutual_info_score(group, found)
        print(f"| {name} | {time.time() - start:.0f} | {score:.3f} |", flush=True)

    start = time.time()
    predicted = peer.fit(frame).transform(frame).select("prediction").collect()
    found = [row.prediction for row in predicted]
    line("Spark ML, indexer, one-hot, KMeans", found)
    start = time.time()
    model = KModes(6, n_init=3, max_iter=10, random_state=0).fit(frame)
    found = [r.cluster for r in model.predict(frame).collect()]
    line("tabweave KModes, 3 starts", found)
    start = time.time()
    model = KModes(6, metric=Weave(), n_init=3, max_iter=10, random_state=0).fit(frame)
    found = [r.cluster for r in model.predict(frame).collect()]
    line("tabweave KModes by Weave, 3 starts", found)


def made_group(n, seed=0):
    """The group that :func:`made` draws first."""
    return np.random.default_rng(seed).integers(0, 6, n)


def show_killed(session, folder, workers):
    """One of the two workers is killed outright while rows are counted."""
    rows = made(60_000, 5)
    path = folder / "killed.parquet"
    rows.to_parquet(path, row_group_size=5_000)
    frame = session.read.parquet(str(path)).repartition(16)
    values = [name for name in rows if name.startswith("c")]
    few = rows.head(2_000)
    classifier = WeaveClassifier().fit(few.drop(columns="c2"), few["c2"])
    model = Weave().fit(rows)
    modes = KModes(4, init=rows[values].iloc[:4].to_numpy())
    started = time.time()

    def kill():
        time.sleep(8)
        os.killpg(workers[0].pid, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    equal = {}
    while thread.is_alive():
        equal["counts, while a worker is killed"] = count(frame) == count(rows)
    print("\n| one of two workers killed | equal to memory's |\n|---|---|")
    ordered = session.read.parquet(str(path))
    found = transform(model, ordered, vector="v").toArrow()["v"].to_pylist()
    equal["vectors"] = bool((np.array(found) == model.transform(rows)).all())
    print_new(equal)
    first = ordered.drop("c2").limit(2_000)
    predicted = classifier.predict(first).toArrow()["prediction"].to_pylist()
    equal["predictions of 2,000 rows"] = (
        predicted == classifier.predict(few.drop(columns="c2")).tolist()
    )
    print_new(equal)
    labels = modes.fit(ordered[values]).predict(ordered[values]).toArrow()["cluster"].to_numpy()
    equal["clusters"] = bool((labels == KModes(4, init=modes.init).fit(rows[values]).labels_).all())
    print_new(equal)
    print(f"\n{time.time() - started:.0f} s; the worker was killed after 8.", flush=True)


def print_new(equal):
    """Print what was found equal, and forget it."""
    for name, same in equal.items():
        print(f"| {name} | {same} |", flush=True)
    equal.clear()


def show_noise(folder):
    """A target of pure noise: fit_transform of a file must not give it away."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import cross_val_predict

    aucs = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        rows = pd.DataFrame({f"c{j}": rng.integers(0, 300, 3000).astype(str) for j in range(5)})
        rows["y"] = rng.choice(["no", "yes"], 3000)
        path = folder / f"noise-{seed}.parquet"
        rows.to_parquet(path)
        vectors = SupervisedWeave().fit_transform(path, "y")
        p = cross_val_predict(
            LogisticRegression(max_iter=500), vectors, rows["y"], method="predict_proba"
        )
        aucs.append(roc_auc_score(rows["y"], p[:, 1]))
    print(f"\nnoise target, fit_transform of a file, 5 seeds: AUC {np.round(aucs, 3).tolist()}")


def main(parts):
    """Show the parts that are named, all by default."""
    warnings.simplefilter("ignore")
    print(f"tabweave {tabweave.__version__}, {os.cpu_count()} cores; load {os.getloadavg()}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if not parts or "noise" in parts:
            show_noise(folder)
        spark = {"counts": show_counts, "fit": show_fit, "peers": show_peers, "killed": show_killed}
        chosen = {n: show for n, show in spark.items() if not parts or n in parts}
        if chosen:
            with cluster() as (session, workers):
                for n, show in chosen.items():
                    show(session, folder, *([workers] if n == "killed" else []))


if __name__ == "__main__":
    main(sys.argv[1:])

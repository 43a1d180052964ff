"""Fifty clients of the studio for a minute, with 1,100 half-open connections beside them.

Run ``python benchmarks/studio_clients.py``, on a machine that has half a processor to spare. A
server is started as ``tabweave studio`` starts it, on a folder with one table. Each client opens
the table and asks for what the page asks for (files, the state, results, neighbours, explanations,
downloads, a job of its own now and then), and sometimes for what is not there, each time over a new
connection and with a pause of a second or so. Beside them 1,100 connections have begun a request
and never end it; those that the server hangs up on are opened anew. One client more asks for the
list of files twice a second: the longest that it waits is the figure. The minute begins when the
server has opened the table once, since the first time it loads what reads tables.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _report import Report

COMMAND = "python benchmarks/studio_clients.py"
SERVE = "from tabweave.apps.studio import serve; import sys; serve(sys.argv[1], open_browser=False)"


class Server:
    """A studio in a process of its own."""

    def __init__(self, folder: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVE, folder], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        found = re.search(r":(\d+)/\?token=(\S+)", self.process.stdout.readline())
        assert found is not None
        self.port, self.token = int(found[1]), found[2]

    def memory(self) -> float:
        """Return the largest memory that the process had, in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024  # type: ignore[index]

    def seconds(self) -> float:
        """Return how many seconds of a processor the process had."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        """Ask over a new connection; the status is 0 if the server hangs up."""
        text = b"" if body is None else json.dumps(body).encode()
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nConnection: close\r\n"
            f"X-Tabweave-Token: {self.token}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(text)}\r\n\r\n"
        )
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            writer.write(head.encode() + text)
            answer = await reader.read()
            writer.close()
            return int(answer.split(b" ", 2)[1]), answer.partition(b"\r\n\r\n")[2]
        except (OSError, IndexError):
            return 0, b""


class Visit:
    """What one client asks, and the answers that were not expected."""

    def __init__(self, server: Server, seed: int) -> None:
        self.server, self.rng = server, random.Random(seed)
        self.statuses: Counter[int] = Counter()
        self.unexpected: list[str] = []
        self.seconds: list[float] = []
        self.source = self.job = ""

    async def ask(self, method: str, path: str, *expected: int, body: Any = None) -> Any:
        """Ask; note the status and how long it took; return the JSON of the answer."""
        start = time.perf_counter()
        status, answer = await self.server.ask(method, path, body)
        self.seconds.append(time.perf_counter() - start)
        self.statuses[status] += 1
        if status not in expected:
            self.unexpected.append(f"{method} {path}: {status} {answer[:200]!r}")
        return json.loads(answer) if answer.startswith(b"{") else {}

    async def run(self, end: float) -> None:
        """Ask until the time is over."""
        opened = await self.ask("POST", "/api/open", 200, body={"path": "rows.csv"})
        self.source = opened.get("source", "")
        while time.perf_counter() < end:
            await asyncio.sleep(self.rng.uniform(0.5, 1.5))
            await self.rng.choice(self.questions())()

    def questions(self) -> list[Callable[[], Any]]:
        """Return what a client may ask now."""
        files = [
            lambda: self.ask("GET", "/", 200),
            lambda: self.ask("GET", "/api/files", 200),
            lambda: self.ask("GET", "/api/jobs/nobody", 404),
            lambda: self.ask("POST", "/api/open", 400, 404, body={"path": "../../etc/passwd"}),
            lambda: self.ask("POST", "/api/open", 200, body={"source": self.source}),
        ]
        if not self.job:
            return [*files, self.start] if self.rng.random() < 0.1 else files
        at = f"/api/jobs/{self.job}"
        early = (200, 400, 404, 409)  # of a job that has not ended
        row = self.rng.randrange(400)
        return [
            *files,
            lambda: self.ask("GET", at, 200, 404),  # the server forgets old jobs
            lambda: self.ask("GET", f"{at}/result", *early),
            lambda: self.ask("GET", f"{at}/near?row={row}", *early),
            lambda: self.ask("GET", f"{at}/explain?a=0&b={row}", *early),
            lambda: self.ask("GET", f"{at}/download/vectors.csv", *early),
            lambda: self.ask("GET", f"{at}/download/model.tabweave", *early),
        ]

    async def start(self) -> None:
        """Start a job; the server takes two at a time and refuses more."""
        asked = {"source": self.source, "method": "onehot"}
        self.job = (await self.ask("POST", "/api/jobs", 200, 400, body=asked)).get("job", "")


async def half_open(server: Server, n: int, end: float) -> int:
    """Keep so many connections that never end their request; return how many were opened."""
    halves: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
    opened = 0
    while time.perf_counter() < end:
        ended = [half for half in halves if half[0].at_eof() or half[1].is_closing()]
        for half in ended:
            half[1].close()
            halves.remove(half)
        for _ in range(min(n - len(halves), 110)):
            try:
                half = await asyncio.open_connection("127.0.0.1", server.port)
            except OSError:
                continue
            half[1].write(b"GET / HTTP/1.1\r\nHost: 127.0")
            halves.append(half)
            opened += 1
        await asyncio.sleep(0.1)
    for _, writer in halves:
        writer.close()
    return opened


async def honest(server: Server, end: float) -> list[float]:
    """Ask for the files twice a second; return how long each answer took."""
    visit = Visit(server, 0)
    while time.perf_counter() < end:
        await visit.ask("GET", "/api/files", 200)
        await asyncio.sleep(0.5)
    assert not visit.unexpected, visit.unexpected[:3]
    return visit.seconds


async def measure(server: Server, clients: int, seconds: float, halves: int) -> dict[str, Any]:
    """Return what happened."""
    await Visit(server, 0).ask("POST", "/api/open", 200, body={"path": "rows.csv"})
    end, before = time.perf_counter() + seconds, server.seconds()
    visits = [Visit(server, seed) for seed in range(clients)]
    opened, waited, *_ = await asyncio.gather(
        half_open(server, halves, end), honest(server, end), *(visit.run(end) for visit in visits)
    )
    return {
        "opened": opened,
        "processor": server.seconds() - before,
        "load": os.getloadavg()[0],
        "waited": waited,
        "statuses": sum((visit.statuses for visit in visits), Counter()),
        "unexpected": [text for visit in visits for text in visit.unexpected],
        "seconds": sorted(s for visit in visits for s in visit.seconds),
        "jobs": sum(bool(visit.job) for visit in visits),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--half-open", type=int, default=1100)
    options = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with tempfile.TemporaryDirectory() as folder:
        rows = "".join(f"{'xyz'[i % 3]},{i % 7},{i}\n" for i in range(400))
        Path(folder, "rows.csv").write_text("a,b,c\n" + rows)
        server = Server(folder)  # with the limit of files that a shell gives
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        try:
            seen = asyncio.run(measure(server, options.clients, options.seconds, options.half_open))
            memory = server.memory()
        finally:
            server.process.terminate()
            server.process.wait()
    report = Report("Clients of the studio", COMMAND)
    report.section(f"{options.clients} clients, {options.seconds:g} s")
    statuses = ", ".join(f"{n:,} × {status}" for status, n in sorted(seen["statuses"].items()))
    report.line(
        f"- half-open connections: {options.half_open:,} at a time, {seen['opened']:,} in all"
    )
    report.line(f"- answers: {statuses}; jobs started: {seen['jobs']}")
    report.at_most("answers of an unexpected status", len(seen["unexpected"]), 0)
    median, longest = seen["seconds"][len(seen["seconds"]) // 2], seen["seconds"][-1]
    report.line(f"- seconds until an answer: median {median:.3f}, longest {longest:.2f}")
    report.line(f"- questions of the honest client: {len(seen['waited'])}")
    report.at_most("longest that the honest client waited, in seconds", max(seen["waited"]), 2)
    report.line(f"- the server: {seen['processor']:.1f} s of a processor, at most {memory:.0f} MB")
    report.line(f"- load of the machine, everything beside it counted: {seen['load']:.1f}")
    for text in seen["unexpected"][:5]:
        report.line(f"- unexpected: {text}")
    report.finish("studio-clients.md")


if __name__ == "__main__":
    main()

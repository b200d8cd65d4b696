"""Records of an evaluation that never ran: seeded, with what real ones have, for the tests of tables and reports."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from fim_server.evaluation.records import MODES, Data, Record, RunInfo, encode_record

BUDGET = 200
SETS = ("stack-boundary", "stack-randspan")
WORDS = ("value", "index", "result", "node", "items", "total", "count", "name", "line", "key", "path", "data", "buffer")


def statement(random_: random.Random) -> str:
    one, two, three = (random_.choice(WORDS) for _ in range(3))
    forms = (
        f"{one} = {two}.{three}",
        f"return {one}({two}, {three})",
        f"if {one} is None:\n        return {two}",
        f"for {one} in {two}:\n        {three}.append({one})",
        f'raise ValueError(f"{{{one}}} is no {two}")',
        f"{one}[{two}] = {three} + 1",
    )
    return random_.choice(forms)


def block(random_: random.Random, lines: int) -> str:
    return "".join(f"    {statement(random_)}\n" for _ in range(lines))


def records(count: int, seed: int = 0, sets: Sequence[str] = SETS, modes: Sequence[str] = MODES) -> list[Record]:
    """``count`` samples in turn of the sets, each in every mode, much as an embedded model does."""
    random_ = random.Random(seed)
    found = []
    for index in range(count):
        name = sets[index % len(sets)]
        kind = ("single-line", "random-span")[index % 3 == 0] if name == "human-eval-infilling" else name
        reference = "; ".join(statement(random_) for _ in range(random_.choice((1, 1, 1, 2, 4))))
        left = f"def {random_.choice(WORDS)}(self, {random_.choice(WORDS)}):\n" + block(
            random_, random_.randrange(1, 40)
        )
        right = "\n" + block(random_, random_.randrange(1, 40))
        context = int(random_.lognormvariate(8.5, 1.1)) + len(left) + len(right)
        open_ms = 0.8 + 0.00025 * context * random_.uniform(0.7, 1.4)
        base = Record(
            sample=f"{name}-{index:06d}",
            set=name,
            kind=kind,
            mode="",
            reference=reference,
            left_tail=left[-2000:],
            right_head=right[:2000],
            hole_characters=len(reference),
            hole_lines=reference.count("\n") + 1,
            left_characters=context * 2 // 3,
            right_characters=context // 3,
            prompt_hash=hashlib.sha256(left.encode()).hexdigest()[:16],
            prompt_tokens=min(1024, context // 4),
            guarantee="exact",
            open_ms=open_ms,
            path=f"package-1.0/{name}.py" if index % 2 else None,
            line=index + 1 if index % 2 else None,
        )
        hard = random_.random()
        found += [_result(base, mode, hard, random_) for mode in modes]
    return found


def _result(base: Record, mode: str, hard: float, random_: random.Random) -> Record:
    ended = hard < 0.7
    tokens = random_.randrange(2, 60) if ended else BUDGET
    point = random_.randrange(1, tokens + 1)
    text: str | None = base.reference if hard < 0.3 else statement(random_)
    good = {"unconstrained": hard < 0.62, "checked": hard < 0.9, "constrained": hard < 0.995}[mode]
    won = {"unconstrained": "end_token" if ended else "budget", "checked": "prefix", "constrained": "end_token"}[mode]
    if mode == "constrained" and not ended:
        won = random_.choice(("point", "landed"))
    if mode != "unconstrained" and not good and random_.random() < 0.7:
        text, won = None, ""
    engine = tokens * random_.uniform(0.01, 0.05) if mode != "unconstrained" else 0.0
    model = 12.0 + 4.0 * tokens * random_.uniform(0.9, 1.2)
    tested = base.set == "human-eval-infilling"
    passed = good and hard < 0.5
    return replace(
        base,
        mode=mode,
        text=text,
        parses=good,
        complete=good,
        stop_reason="end_token" if ended else "budget",
        won=won or None,
        tokens=tokens,
        text_tokens=point if text is not None else 0,
        refused=random_.randrange(0, 3) if mode == "constrained" else 0,
        forced=random_.randrange(0, 5) if mode == "constrained" else 0,
        landing=random_.randrange(1, 9) if won == "landed" else 0,
        complete_at=(((tokens, tokens) if won == "landed" else (point, min(point + 2, tokens))),) if good else (),
        model_ms=model,
        engine_ms=engine,
        engine_wait_ms=0.3 * engine,
        total_ms=(base.open_ms or 0.0) + model + 0.3 * engine,
        exact_match=text == base.reference,
        edit_similarity=1.0 if text == base.reference else 0.0 if text is None else random_.uniform(0.1, 0.9),
        suffix_overlap=random_.choice((0, 0, 0, 3, 20)),
        passed=passed if tested else None,
        failure=random_.choice(("wrong", "error", "timeout")) if tested and not passed else None,
    )


def run_info(modes: Sequence[str] = MODES, **changed: object) -> RunInfo:
    info = RunInfo(
        data=(Data("samples.jsonl", "0" * 64, 100),),
        model="embedded",
        model_sha256="1" * 64,
        format="fim-server",
        modes=tuple(modes),
        budget=BUDGET,
        max_prompt_tokens=1024,
        seed=0,
        temperature=0.0,
        batch=8,
        device="cpu",
        language_version=None,
        versions={"fim-server": "0.1.0", "python": "3.11.9"},
        machine={"system": "Linux", "processor": "x86_64", "cores": 2},
        started="2026-11-21T10:00:00+00:00",
    )
    return replace(info, **changed)  # type: ignore[arg-type] # tests name the fields


def write_run(folder: Path, found: Iterable[Record], info: RunInfo | None = None, shards: int = 1) -> Path:
    """A run's folder, as the runner leaves it."""
    folder.mkdir(parents=True, exist_ok=True)
    (info or run_info()).write(folder)
    lines = [encode_record(record) for record in found]
    for shard in range(shards):
        name = "samples.jsonl" if shards == 1 else f"samples-{shard + 1}-of-{shards}.jsonl"
        (folder / name).write_bytes(b"".join(lines[shard::shards]))
    return folder


def write_data(path: Path, found: Iterable[Record], per_file: int = 10) -> Data:
    """The samples' own file, several samples from one file each; what a run names as its data."""
    keys = list(dict.fromkeys((record.set, record.sample, record.kind) for record in found))
    origin = {"source": "stdlib", "package": None, "version": None, "path": "a.py", "licence": None}
    with path.open("w", encoding="utf-8") as output:
        for number, (name, sample, kind) in enumerate(keys):
            fields = {"id": sample, "set": name, "kind": kind, "left": "", "middle": "", "right": ""}
            sha256 = hashlib.sha256(str(number // per_file).encode()).hexdigest()
            output.write(json.dumps({**fields, "language": "python", "origin": {**origin, "sha256": sha256}}) + "\n")
    return Data(str(path), hashlib.sha256(path.read_bytes()).hexdigest(), len(keys))


def record(sample: str, mode: str, success: bool = True, **changed: object) -> Record:
    """One record, made by hand: a text that parses and is no match, or none that does."""
    made = Record(
        sample=sample,
        set="stack-boundary",
        kind="stack-boundary",
        mode=mode,
        reference="x = 1",
        left_tail="",
        right_head="\n",
        hole_characters=5,
        hole_lines=1,
        left_characters=100,
        right_characters=50,
        prompt_hash="0" * 16,
        prompt_tokens=40,
        text="y = 2" if success else "y = (",
        parses=success,
        complete=success,
        guarantee="exact",
        stop_reason="end_token",
        won="end_token",
        tokens=4,
        text_tokens=4,
        refused=0,
        forced=0,
        landing=0,
        complete_at=((4, 4),) if success else (),
        open_ms=1.0,
        model_ms=20.0,
        engine_ms=2.0,
        engine_wait_ms=0.5,
        total_ms=22.0,
        exact_match=False,
        edit_similarity=0.5,
        suffix_overlap=0,
    )
    return replace(made, **changed)  # type: ignore[arg-type] # tests name the fields


ODD_TEXTS = (
    "</script><script>window.broken = 1</script>",
    "<img src=x onerror='window.broken = 1'> & <b>bold</b> {{ 7 * 7 }} {% raw %}",
    "nul \x00 bell \x07 escape \x1b[31m",
    "lone \ud800 and \udc00 surrogates, a pair \U0001f600",
    "right to left: \u05e9\u05dc\u05d5\u05dd \u202e reversed \u202c, \u0645\u0631\u062d\u0628\u0627",
    "\u2028 line separators \u2029 and \ufeff marks",
    "x" * 30_000,
    "",
    "\t\ttabs\n\n\n   blanks   ",
    "-->]]><!--",
    "'\"`$|\\",
)


def odd_records() -> list[Record]:
    """Records with texts that break careless pages, in every place that a text has."""
    found = []
    for number, text in enumerate(ODD_TEXTS):
        texts = {"reference": text, "text": text, "left_tail": text[:2000], "right_head": text[:2000]}
        for mode in MODES:
            sample = f"odd-{number} {text[:40]}"
            found.append(record(sample, mode, mode == "checked", kind=f"odd {text[:20]}", **texts))
        found.append(record(f"error-{number}", "constrained", text=None, parses=None, error=text or "none given"))
    return found

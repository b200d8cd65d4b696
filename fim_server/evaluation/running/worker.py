"""Workers that measure samples: a model, a parser, a judge."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from fim_server.datasets.python.text import LANGUAGE as PYTHON
from fim_server.datasets.samples import Origin, Sample
from fim_server.evaluation.records import Record
from fim_server.evaluation.running.judges import Judges, languages_of
from fim_server.evaluation.running.measures import (
    TAIL_CHARACTERS,
    edit_similarity,
    exact_match,
    one_line,
    similarity_function,
    suffix_overlap,
)
from fim_server.evaluation.running.provenance import export_hash, model_hash, versions
from fim_server.evaluation.running.settings import WorkerSettings
from fim_server.evaluation.running.unit_tests import Test, isolation, start_tests
from fim_server.recovery.recovery import Recovery

if TYPE_CHECKING:
    from fim_server.decoding.protocols import Session
    from fim_server.evaluation.running.modes import Decoder, Offer, Offers, Prepared
    from fim_server.language import Language
    from fim_server.models.model import FimModel


class Measuring(Protocol):
    """Measurer of batches: a :class:`Worker`, or many."""

    def about(self) -> Mapping[str, Any]:
        """Return the fields of run.json beside the settings.

        ``format``, ``device``, ``runtime``, ``model_sha256``, ``export_sha256``, ``languages``, ``judge``, ``judges``,
        ``language_version``, ``language_versions``, ``versions``, ``machine``.
        """

    def measure_all(self, batches: Iterable[Sequence[Sample]], /) -> Iterator[list[Record]]:
        """The results of each batch, in whatever order the batches are done."""


class Worker:
    """A model, loaded, that measures samples in one process."""

    def __init__(self, settings: WorkerSettings, model: FimModel | None = None) -> None:
        """Loads the settings' model, or takes one that is loaded.

        Raises ModelError and LanguageError as their modules say, JudgeError, and MissingLibrary without rapidfuzz.
        """
        similarity_function()
        from fim_server.evaluation.running.modes import Decoder, Decoding
        from fim_server.models.load import load_model
        from fim_server.tokens.masks import prepare

        self._settings = settings
        self._judges = Judges(
            languages_of(settings.languages, settings.judges),
            settings.judge,
            settings.judges,
            settings.language_version,
            settings.versions,
        )
        self._languages = self._judges.languages
        self._openers: dict[str, Language | Recovery] = {
            name: Recovery(language.open) if language.has_grammar else language
            for name, language in self._languages.items()
        }
        self._loaded = model is None
        self.model = model or load_model(settings.model, settings.device, settings.runtime, settings.load)
        if self._loaded:
            for language in self._languages.values():
                if language.has_grammar:
                    prepare(language, self.model.vocabulary)
        decoding = Decoding(
            settings.modes,
            settings.budget,
            settings.max_prompt_tokens,
            settings.seed,
            settings.temperature,
            settings.landing,
            settings.reads,
            settings.heal,
            settings.single_line,
            settings.score,
            settings.truncation,
        )
        self.decoder: Decoder = Decoder(self.model, self._open, decoding)

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._judges.close()

    def _open(self, language: str, left: str, right: str) -> Session:
        return self._openers[language].open(left, right)

    def about(self) -> Mapping[str, Any]:
        """See :meth:`Measuring.about`."""
        asked = self._settings
        return {
            "format": self.decoder.model.format.family,
            "device": str(self.model.device),
            "runtime": self.model.runtime,
            "model_sha256": model_hash(asked.model, asked.load.adapter) if self._loaded else self.model.name,
            "export_sha256": export_hash(asked.model) if self.model.runtime == "onnx" else None,
            "languages": tuple(self._languages),
            "judge": self._judges.python,
            "judges": self._judges.titles,
            "language_versions": self._judges.versions,
            "language_version": self._languages[PYTHON].version if PYTHON in self._languages else None,
            "versions": versions(self.model.runtime),
            "machine": {
                "system": platform.platform(),
                "cores": os.cpu_count(),
                **described_backend(self.model),
                "sandbox": isolation(),
            },
        }

    def measure_all(self, batches: Iterable[Sequence[Sample]]) -> Iterator[list[Record]]:
        """See :meth:`Measuring.measure_all`."""
        return map(self.measure, batches)

    def measure(self, samples: Sequence[Sample]) -> list[Record]:
        """The results of samples that are decoded together, in their order; for each, all modes."""
        if self._settings.single_line:
            from fim_server.evaluation.running.modes import as_line

            samples = [as_line(sample) for sample in samples]
        found: dict[int, Offers] = {}
        prepared: dict[int, Prepared] = {}
        for number, sample in enumerate(samples):
            try:
                if sample.language not in self._languages:
                    raise ValueError(f"no parser for {sample.language} to judge by")
                prepared[number] = self.decoder.prepare(sample)
            except Exception as error:  # noqa: BLE001  # recorded as the sample's own
                found[number] = error
        found |= zip(prepared, self._decode(list(prepared.values())), strict=True)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            tested = {number: one.sample for number, one in prepared.items() if self._settings.tested}
            tests = start_tests(pool, tested, found, self._settings.unsafe)
            records: list[Record] = []
            for number, sample in enumerate(samples):
                offers = found[number]
                if not isinstance(offers, Exception):
                    try:
                        records += self._results(prepared[number], offers, tests.get(number, {}))
                        continue
                    except Exception as error:  # noqa: BLE001  # as above
                        offers = error
                records += [failed(sample, mode, offers) for mode in self._settings.modes]
        return records

    def _decode(self, samples: Sequence[Prepared]) -> list[Offers]:
        """Decode together; where that fails as a whole (out of memory), one by one."""
        try:
            return self.decoder.decode(samples)
        except Exception as error:  # noqa: BLE001  # whatever a model and its device raise
            if len(samples) == 1:
                return [error]
        if self.model.runtime == "torch":
            from fim_server.models.pytorch.backend import free_memory

            free_memory()
        return [offers for one in samples for offers in self._decode([one])]

    def _results(self, one: Prepared, offers: Mapping[str, Offer], tests: Mapping[str, Future[Test]]) -> list[Record]:
        """The results of a sample that was decoded. Equal texts are judged once."""
        sample = one.sample
        verdicts: dict[str, dict[str, Any]] = {}
        records: list[Record] = []
        session = None
        for mode, offer in offers.items():
            verdict = None if offer.text is None else verdicts.get(offer.text)
            if verdict is None:
                verdict = {
                    "exact_match": exact_match(offer.text, sample.middle),
                    "edit_similarity": edit_similarity(offer.text, sample.middle),
                    "suffix_overlap": suffix_overlap(offer.text, sample.right),
                    "parses": False,
                    "complete": False,
                    "passed": None if sample.test is None or not self._settings.tested else False,
                    "failure": None,
                }
                if offer.text is not None:
                    session = session or self._languages[sample.language].open(sample.left, sample.right)
                    claimed = verdict["complete"] = session.check(offer.text).complete
                    verdict["parses"] = self._judges.parses(sample.language, sample.filled(offer.text), claimed)
                    if offer.text in tests:
                        verdict["passed"], verdict["failure"] = tests[offer.text].result()
                    verdicts[offer.text] = verdict
            measured = {"prompt_hash": one.prompt_hash, "prompt_tokens": len(one.prompt), **asdict(offer), **verdict}
            records.append(Record(**described(sample, mode), **measured))
        return records


def described_backend(model: FimModel) -> dict[str, Any]:
    """Describe a model's hardware: device and threads; with torch also the numbers' type."""
    if model.runtime != "torch":
        return {"device": platform.processor() or platform.machine(), "threads": model.backend.threads}
    from fim_server.models.pytorch.backend import describe_machine

    return describe_machine(model.backend)


def described(sample: Sample, mode: str) -> dict[str, Any]:
    """The fields of a result that are the sample's."""
    return {
        "sample": sample.id,
        "set": sample.set,
        "kind": sample.kind,
        "mode": mode,
        "reference": sample.middle,
        "left_tail": sample.left[-TAIL_CHARACTERS:],
        "right_head": sample.right[:TAIL_CHARACTERS],
        "hole_characters": len(sample.middle),
        "hole_lines": sample.middle.count("\n") + 1,
        "left_characters": len(sample.left),
        "right_characters": len(sample.right),
        "path": path_of(sample.origin),
        "line": sample.left.count("\n") + 1,
        "language": sample.language,
    }


def path_of(origin: Origin) -> str:
    """A sample's file: ``package-version/path``, or the path alone where there is no package."""
    package = "-".join(part for part in (origin.package, origin.version) if part)
    return f"{package}/{origin.path}" if package else origin.path


def failed(sample: Sample, mode: str, error: Exception) -> Record:
    """The result of a sample that could not be measured."""
    return Record(**described(sample, mode), error=one_line(error))

// The statistics as a page of plain text.
import type { Retained, Statistics } from "./protocol";
import { duration, grouped, languageName, percentage, shortModelName } from "./words";

type Row = readonly [name: string, value: string, note?: string];

export function statisticsText(statistics: Statistics, formatDate = localDate): string {
  const { latency } = statistics;
  const rows: Row[] = [
    ["Requests", grouped(statistics.requests)],
    [
      "answered from the cache",
      grouped(statistics.answeredFromCache),
      share(statistics.answeredFromCache, statistics.requests),
    ],
    ["cancelled by the editor", grouped(statistics.cancelled), share(statistics.cancelled, statistics.requests)],
    ["superseded by newer ones", grouped(statistics.superseded), share(statistics.superseded, statistics.requests)],
    ["failed", grouped(statistics.failed), share(statistics.failed, statistics.requests)],
    ["Suggestions shown", grouped(statistics.shown)],
    ["accepted", grouped(statistics.accepted), share(statistics.accepted, statistics.shown)],
    ["Characters accepted", grouped(statistics.acceptedCharacters)],
    ...(statistics.savedKeystrokes === undefined
      ? []
      : [["keystrokes saved", grouped(statistics.savedKeystrokes)] as const]),
    ...retainedRows(statistics.retained),
    ["Latency, median", optionalDuration(latency.p50Ms)],
    ["Latency, 95th percentile", optionalDuration(latency.p95Ms)],
    ["without model, engine and waiting", optionalDuration(latency.serverP95Ms)],
    ...statistics.thresholdShifts.map(
      ([language, shift]) => [`Threshold in ${language}`, `${shift < 0 ? "−" : "+"}${Math.abs(shift)}`] as const,
    ),
  ];
  const names = rows.map(([name]) => (/^[A-Z0-9]/.test(name) ? name : `  ${name}`));
  const nameWidth = Math.max(...names.map((name) => name.length));
  const valueWidth = Math.max(...rows.map(([, value]) => value.length));
  const lines = rows.map(([, value, note], index) =>
    `  ${(names[index] ?? "").padEnd(nameWidth)}  ${value.padStart(valueWidth)}${note ? `  (${note})` : ""}`.trimEnd(),
  );
  const since = formatDate(statistics.since);
  return [
    "fim-server: statistics",
    since === "" ? "since the server started" : `since the server started, ${since}`,
    "",
    ...lines,
    "",
    ...(statistics.retained.length === 0
      ? []
      : ["Retained: characters, without blanks, of words that still stand in order where the text was accepted.", ""]),
    "The server keeps these numbers in memory until it ends. They never leave this machine.",
    "",
  ].join("\n");
}

function retainedRows(rows: readonly Retained[]): Row[] {
  return rows.map(({ language, model, seconds, characters, retained }) => [
    `retained after ${time(seconds)}, ${languageName(language)}, ${shortModelName(model)}`,
    grouped(retained),
    `${percentage(characters > 0 ? retained / characters : 0)} of ${grouped(characters)}`,
  ]);
}

function time(seconds: number): string {
  return seconds % 60 === 0 ? `${seconds / 60} min` : `${seconds} s`;
}

function share(part: number, whole: number): string {
  return part > 0 && whole > 0 ? percentage(part / whole) : "";
}

function optionalDuration(milliseconds: number | null): string {
  return milliseconds === null ? "not known yet" : duration(milliseconds);
}

function localDate(iso: string): string {
  const date = new Date(iso);
  return Number.isNaN(date.getTime()) ? "" : date.toLocaleString();
}

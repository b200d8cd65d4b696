// The statistics as a page of plain text.
import type { Statistics } from "./protocol";
import { duration, grouped, percentage } from "./words";

export function statisticsText(statistics: Statistics, formatDate = localDate): string {
  const { latency } = statistics;
  const rows: (readonly [name: string, value: string, note?: string])[] = [
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
    "The server keeps these numbers in memory until it ends. They never leave this machine.",
    "",
  ].join("\n");
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

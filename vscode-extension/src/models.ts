// Models to choose and remove, and local endpoints, as data.
import type { InstalledModel, Removed } from "./protocol";
import { duration, megabytes } from "./words";

/** Entry of the model picker. */
export interface ModelChoice {
  /** Heading over the entry. */
  readonly group: string;
  readonly label: string;
  readonly description?: string;
  readonly detail?: string;
  /** The setting `model`, or a question or action to get it. */
  readonly value: string | null | Ask;
}

export interface Ask {
  readonly ask: "file" | "endpoints" | "address" | "name" | "get" | "remove";
  /** The model to get. */
  readonly name?: string;
}

/** A model behind an endpoint. */
export interface Endpoint {
  /** The setting `model`. */
  readonly address: string;
  readonly model: string;
  readonly kind: string;
}

/** Reads a URL as JSON; undefined without a JSON answer. */
export type Get = (url: string) => Promise<unknown>;

/** Default ports of the programs. */
const PORTS: Readonly<Record<number, string>> = {
  8080: "llama.cpp",
  11434: "Ollama",
  1234: "LM Studio",
  8000: "vLLM",
};

const HERE = "on this machine";
const TO_GET = "to download";
const ELSEWHERE = "elsewhere";

/** Models of every server, if it does not list them. */
const USUAL: readonly ModelChoice[] = [
  { group: HERE, label: "smollm2", description: "135 million parameters, trained to fill in Python", value: "smollm2" },
  { group: HERE, label: "embedded", description: "7 million parameters, comes with fim-server", value: "embedded" },
];

/** Entries of the picker. `present`: the current setting; `installed`: the server's list. */
export function modelChoices(present: unknown, installed: readonly InstalledModel[] = []): ModelChoice[] {
  const removable = installed.some((model) => model.removable);
  const here = installed.filter((model) => model.state !== "missing");
  const missing = installed.filter((model) => model.state === "missing");
  const choices: ModelChoice[] = [
    { group: HERE, label: "Default", description: "smollm2 if installed, else embedded", value: null },
    ...(installed.length > 0 ? here.map(installedChoice) : USUAL),
    { group: HERE, label: "$(file) GGUF File…", description: "on llama.cpp, in the server", value: { ask: "file" } },
    ...(removable ? [{ group: HERE, label: "$(trash) Remove a Model…", value: { ask: "remove" } } as const] : []),
    ...missing.map(installedChoice),
    {
      group: ELSEWHERE,
      label: "$(search) Look for Endpoints on This Machine…",
      description: `tries ports ${Object.keys(PORTS).join(", ")}`,
      value: { ask: "endpoints" },
    },
    { group: ELSEWHERE, label: "$(globe) Address of an Endpoint…", value: { ask: "address" } },
    { group: ELSEWHERE, label: "$(cloud) Folder or Hub Name…", value: { ask: "name" } },
  ];
  const now = typeof present === "string" && present !== "" ? present : null;
  const known = choices.some((choice) => choice.value === now) || installed.some(({ name }) => name === now);
  const all = known ? choices : [{ group: "", label: String(now), value: now }, ...choices];
  return all.map((choice) =>
    choice.value === now
      ? { ...choice, description: ["selected", choice.description].filter(Boolean).join(": ") }
      : choice,
  );
}

/** Returns the choice of a model; choosing a missing or damaged one downloads it. */
function installedChoice(model: InstalledModel): ModelChoice {
  const isMissing = model.state === "missing";
  const toGet = { missing: "not installed: downloads it", damaged: "damaged: repairs it" }[model.state];
  return {
    group: isMissing ? TO_GET : HERE,
    ...named(model),
    description: [toGet, ...(isMissing ? offered(model) : facts(model))].filter(Boolean).join(", "),
    value: toGet === undefined ? model.name : { ask: "get", name: model.name },
  };
}

/** Label of a model. A file's path is below it. */
function named({ name, state, about }: InstalledModel): { label: string; detail?: string } {
  return state === "file"
    ? { label: name.split(/[\\/]/).pop() || name, detail: name }
    : { label: name, ...(about === "" ? {} : { detail: about }) };
}

/** Size and licence of a model that can be downloaded. */
function offered({ recommended, downloadBytes, licence, open }: InstalledModel): string[] {
  return [
    ...(recommended ? ["recommended for this machine"] : []),
    ...(downloadBytes === null ? [] : [`about ${megabytes(downloadBytes)}`]),
    ...(licence === "" ? [] : [`licence ${licence}${open ? "" : " (not open source)"}`]),
  ];
}

function facts(model: InstalledModel): string[] {
  return [
    ...(model.recommended ? ["recommended for this machine"] : []),
    ...(model.state === "outdated" ? ["outdated"] : []),
    ...(model.bytes === null ? [] : [megabytes(model.bytes)]),
    ...(model.lineMs === null ? [] : [`a line in ${duration(model.lineMs)}`]),
  ];
}

/** A model that can be removed. */
export interface RemovalChoice {
  readonly label: string;
  readonly description: string;
  readonly detail?: string;
  readonly model: InstalledModel;
}

/** Models that the server can remove, with a note on those in use. */
export function removalChoices(installed: readonly InstalledModel[]): RemovalChoice[] {
  return installed
    .filter((model) => model.removable)
    .map((model) => ({
      ...named(model),
      description: [...(model.inUse ? ["in use"] : []), ...facts(model)].join(", "),
      model,
    }));
}

export function removalQuestion({ name, bytes, state }: InstalledModel): string {
  const size = bytes === null ? "" : ` (${megabytes(bytes)})`;
  const shared = state === "hub" ? " It is in the hub's cache, which other programs use as well." : "";
  return `Remove the model ${name}${size} from this machine?${shared}`;
}

/** Message about a removal. */
export function removalMessage(removed: Removed | undefined): { message: string; isProblem: boolean } {
  return removed?.done
    ? {
        message: `fim-server: removed ${removed.name}, which freed ${megabytes(removed.freedBytes)}.`,
        isProblem: false,
      }
    : { message: `fim-server: ${removed?.problem ?? "the model could not be removed"}`, isProblem: true };
}

/** Returns the models of local endpoints, in the order of `PORTS`. */
export async function findEndpoints(get: Get): Promise<Endpoint[]> {
  const found = await Promise.all(
    Object.entries(PORTS).map(([port, kind]) => modelsAt(`http://127.0.0.1:${port}`, kind, get)),
  );
  return found.flat();
}

async function modelsAt(base: string, kind: string, get: Get): Promise<Endpoint[]> {
  const properties = fields(await get(`${base}/props`));
  if (properties["default_generation_settings"] !== undefined) {
    const path = String(properties["model_path"] ?? "");
    return [{ address: base, model: path.split(/[\\/]/).pop() || "its model", kind: "llama.cpp" }];
  }
  const tags = list(fields(await get(`${base}/api/tags`))["models"]);
  const names = tags.map((entry) => fields(entry)["name"]);
  const ids =
    names.length > 0 ? [] : list(fields(await get(`${base}/v1/models`))["data"]).map((entry) => fields(entry)["id"]);
  return [...names, ...ids]
    .filter((name): name is string => typeof name === "string" && name !== "")
    .map((model) => ({ address: `${base}#${model}`, model, kind: names.length > 0 ? "Ollama" : kind }));
}

function fields(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Returns the problem of an address; undefined if there is none. */
export function addressProblem(text: string): string | undefined {
  let url: URL;
  try {
    url = new URL(text.trim());
  } catch {
    return "An address begins with http:// or https://";
  }
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    return "An address begins with http:// or https://";
  }
  if (url.username !== "" || url.password !== "" || url.search !== "") {
    return "Put the key into the environment variable that fim-server.apiKeyEnv names, not into the address";
  }
  return undefined;
}

// The models that can be chosen, and endpoints that answer on this machine, as data.

/** What is there to choose. */
export interface ModelChoice {
  readonly label: string;
  readonly description?: string;
  /** The setting `model`, or what is to be asked for it. */
  readonly value: string | null | Ask;
}

export interface Ask {
  readonly ask: "file" | "endpoints" | "address" | "name";
}

/** A model behind an endpoint. */
export interface Endpoint {
  /** The setting `model`. */
  readonly address: string;
  readonly model: string;
  readonly kind: string;
}

/** Reads a URL as JSON; undefined where nothing answers so. */
export type Get = (url: string) => Promise<unknown>;

/** Where the programs listen unless they are told another port. */
const PORTS: Readonly<Record<number, string>> = {
  8080: "llama.cpp",
  11434: "Ollama",
  1234: "LM Studio",
  8000: "vLLM",
};

/** The first page: `present` is the setting now. */
export function modelChoices(present: unknown): ModelChoice[] {
  const choices: ModelChoice[] = [
    { label: "Default", description: "smollm2 where it was fetched, else embedded", value: null },
    { label: "smollm2", description: "135 million parameters, trained to fill in Python", value: "smollm2" },
    { label: "embedded", description: "7 million parameters, comes with fim-server", value: "embedded" },
    { label: "$(file) GGUF File…", description: "on llama.cpp, in the server", value: { ask: "file" } },
    {
      label: "$(search) Look for Endpoints on This Machine…",
      description: `asks ports ${Object.keys(PORTS).join(", ")}`,
      value: { ask: "endpoints" },
    },
    { label: "$(globe) Address of an Endpoint…", value: { ask: "address" } },
    { label: "$(cloud) Folder or Hub Name…", value: { ask: "name" } },
  ];
  const now = typeof present === "string" && present !== "" ? present : null;
  const known = choices.some((choice) => choice.value === now);
  const all = known ? choices : [{ label: String(now), value: now }, ...choices];
  return all.map((choice) =>
    choice.value === now
      ? { ...choice, description: ["chosen now", choice.description].filter(Boolean).join(": ") }
      : choice,
  );
}

/** The models of the endpoints that answer, in the order of the ports' list. */
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

/** What is wrong with an address, in words; undefined for nothing. */
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
    return "A key goes into the environment variable that fim-server.apiKeyEnv names, not into the address";
  }
  return undefined;
}

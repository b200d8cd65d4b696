// The interpreter selected in a Python extension. Neither extension is a dependency, so their exports are checked before
// use.
//
// ms-python.vscode-python-envs: getEnvironment(scope), onDidChangeEnvironment.
// ms-python.python: environments.getActiveEnvironmentPath(resource), .resolveEnvironment(path),
// .onDidChangeActiveEnvironmentPath.

export interface Disposable {
  dispose(): unknown;
}

/** The used part of an extension. */
export interface ExtensionLike {
  readonly isActive: boolean;
  readonly exports: unknown;
  activate(): PromiseLike<unknown>;
}

export interface Interpreters {
  /** The selected interpreter's path for a resource; undefined if there is none. */
  selected(resource: unknown): Promise<string | undefined>;
  /** Calls the listener when a selection changes in an active extension. */
  onDidChange(listener: () => void): Disposable[];
}

/** Time limit for an extension that hangs. */
export const PATIENCE_MS = 10_000;

type Api = Readonly<Record<string, unknown>>;

const PYTHON_EXTENSIONS: readonly { id: string; read: (api: Api, resource: unknown) => Promise<string | undefined> }[] =
  [
    { id: "ms-python.vscode-python-envs", read: fromEnvironments },
    { id: "ms-python.python", read: fromPython },
  ];

/** @param report logs a failure of the other extension */
export function createInterpreters(
  getExtension: (id: string) => ExtensionLike | undefined,
  report: (problem: string) => void,
  patienceMs = PATIENCE_MS,
): Interpreters {
  async function apiOf(id: string): Promise<Api | undefined> {
    const extension = getExtension(id);
    if (extension === undefined) {
      return undefined;
    }
    const api = await withPatience(extension.isActive ? extension.exports : extension.activate(), patienceMs);
    return isApi(api) ? api : undefined;
  }

  return {
    async selected(resource) {
      for (const { id, read } of PYTHON_EXTENSIONS) {
        try {
          const api = await apiOf(id);
          const path = api && (await withPatience(read(api, resource), patienceMs));
          if (path !== undefined && path !== "") {
            return path;
          }
        } catch (error) {
          report(`${id} did not name an interpreter: ${error}`);
        }
      }
      return undefined;
    },

    onDidChange(listener) {
      const listeners: Disposable[] = [];
      for (const { id } of PYTHON_EXTENSIONS) {
        const extension = getExtension(id);
        const api = extension?.isActive ? extension.exports : undefined;
        if (isApi(api)) {
          listeners.push(...subscribe(api["onDidChangeEnvironment"], listener));
          listeners.push(...subscribe(member(api["environments"], "onDidChangeActiveEnvironmentPath"), listener));
        }
      }
      return listeners;
    },
  };
}

async function fromEnvironments(api: Api, resource: unknown): Promise<string | undefined> {
  const environment = await call(api, "getEnvironment", resource);
  const execution = member(environment, "execInfo");
  return asText(member(member(execution, "run"), "executable"));
}

async function fromPython(api: Api, resource: unknown): Promise<string | undefined> {
  const environments = api["environments"];
  if (!isApi(environments)) {
    return undefined;
  }
  const path = await call(environments, "getActiveEnvironmentPath", resource);
  const environment = await call(environments, "resolveEnvironment", path);
  return asText(member(member(member(environment, "executable"), "uri"), "fsPath"));
}

function isApi(value: unknown): value is Api {
  return typeof value === "object" && value !== null;
}

function member(value: unknown, name: string): unknown {
  return isApi(value) ? value[name] : undefined;
}

function asText(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

async function call(api: Api, name: string, argument: unknown): Promise<unknown> {
  const method = api[name];
  return typeof method === "function" ? await method.call(api, argument) : undefined;
}

function subscribe(event: unknown, listener: () => void): Disposable[] {
  if (typeof event !== "function") {
    return [];
  }
  const subscription: unknown = event(() => listener());
  const dispose = member(subscription, "dispose");
  return typeof dispose === "function" ? [{ dispose: () => dispose.call(subscription) }] : [];
}

/** Returns the value, or undefined if it takes too long. */
export async function withPatience<T>(value: PromiseLike<T> | T, milliseconds: number): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), milliseconds);
  });
  try {
    return await Promise.race([value, timeout]);
  } finally {
    clearTimeout(timer);
  }
}

import assert from "node:assert/strict";
import { test } from "node:test";
import { createInterpreters, type ExtensionLike } from "../src/finding/interpreters";

const ENVIRONMENTS = "ms-python.vscode-python-envs";
const PYTHON = "ms-python.python";
const NEVER = new Promise<never>(() => undefined);

function extension(exports: unknown, isActive = true): ExtensionLike {
  const state = { isActive, exports: isActive ? exports : undefined };
  return {
    get isActive() {
      return state.isActive;
    },
    get exports() {
      return state.exports;
    },
    activate: async () => {
      state.isActive = true;
      state.exports = exports;
      return exports;
    },
  };
}

/** The used exports of ms-python.vscode-python-envs. */
function environmentsApi(executable: string | undefined) {
  return {
    listeners: new Set<() => void>(),
    async getEnvironment(_scope: unknown) {
      return executable === undefined ? undefined : { execInfo: { run: { executable } } };
    },
    onDidChangeEnvironment(this: void, listener: () => void) {
      return { dispose: listener };
    },
  };
}

/** The exports of ms-python.python, whose methods rely on `this`. */
class PythonEnvironments {
  private readonly paths = new Map([["/folder", "/env-of-folder"]]);
  getActiveEnvironmentPath(resource: unknown) {
    return { id: "1", path: this.paths.get(String(resource)) ?? "/env" };
  }
  async resolveEnvironment({ path }: { path: string }) {
    return { executable: { uri: { fsPath: `${path}/bin/python` } } };
  }
}

function interpretersOf(extensions: Record<string, ExtensionLike>, problems: string[] = []) {
  return createInterpreters(
    (id) => extensions[id],
    (problem) => problems.push(problem),
    20,
  );
}

test("no Python extension, no interpreter", async () => {
  assert.equal(await interpretersOf({}).selected(undefined), undefined);
});

test("ms-python.vscode-python-envs, activated first", async () => {
  const interpreters = interpretersOf({ [ENVIRONMENTS]: extension(environmentsApi("/e/bin/python"), false) });
  assert.equal(await interpreters.selected(undefined), "/e/bin/python");
});

test("ms-python.python, by resource", async () => {
  const interpreters = interpretersOf({ [PYTHON]: extension({ environments: new PythonEnvironments() }) });
  assert.equal(await interpreters.selected("/folder"), "/env-of-folder/bin/python");
  assert.equal(await interpreters.selected(undefined), "/env/bin/python");
});

test("the environments extension overrides the Python extension if it names an interpreter", async () => {
  const python = extension({ environments: new PythonEnvironments() });
  const both = interpretersOf({ [ENVIRONMENTS]: extension(environmentsApi("/e/bin/python")), [PYTHON]: python });
  assert.equal(await both.selected(undefined), "/e/bin/python");
  const none = interpretersOf({ [ENVIRONMENTS]: extension(environmentsApi(undefined)), [PYTHON]: python });
  assert.equal(await none.selected(undefined), "/env/bin/python");
  const switchedOff = interpretersOf({ [ENVIRONMENTS]: extension(undefined), [PYTHON]: python });
  assert.equal(await switchedOff.selected(undefined), "/env/bin/python");
});

test("a failing extension is reported, a hanging one abandoned", async () => {
  const python = extension({ environments: new PythonEnvironments() });
  const problems: string[] = [];
  const failing: ExtensionLike = {
    isActive: false,
    exports: undefined,
    activate: () => Promise.reject(new Error("no")),
  };
  assert.equal(
    await interpretersOf({ [ENVIRONMENTS]: failing, [PYTHON]: python }, problems).selected(undefined),
    "/env/bin/python",
  );
  assert.match(problems.join(), /vscode-python-envs.*no/);
  const hanging: ExtensionLike = { isActive: false, exports: undefined, activate: () => NEVER };
  assert.equal(
    await interpretersOf({ [ENVIRONMENTS]: hanging, [PYTHON]: python }).selected(undefined),
    "/env/bin/python",
  );
  const mute = extension({ getEnvironment: () => NEVER });
  assert.equal(await interpretersOf({ [ENVIRONMENTS]: mute }).selected(undefined), undefined);
});

test("exports of other shapes are no interpreter", async () => {
  for (const exports of [null, 3, {}, { environments: {} }, { environments: 3 }, { getEnvironment: 3 }]) {
    assert.equal(await interpretersOf({ [PYTHON]: extension(exports) }).selected(undefined), undefined);
  }
});

test("changes are observed in active extensions until disposal", () => {
  const listeners = new Set<() => void>();
  const event = (listener: () => void) => {
    listeners.add(listener);
    return { dispose: () => listeners.delete(listener) };
  };
  let changes = 0;
  const subscriptions = interpretersOf({
    [ENVIRONMENTS]: extension({ onDidChangeEnvironment: event }),
    [PYTHON]: extension({ environments: { onDidChangeActiveEnvironmentPath: event } }),
  }).onDidChange(() => changes++);
  for (const listener of listeners) {
    listener();
  }
  assert.equal(changes, 2);
  for (const subscription of subscriptions) {
    subscription.dispose();
  }
  assert.equal(listeners.size, 0);
  const asleep = extension({ onDidChangeEnvironment: event }, false);
  assert.deepEqual(
    interpretersOf({ [ENVIRONMENTS]: asleep }).onDidChange(() => undefined),
    [],
  );
});

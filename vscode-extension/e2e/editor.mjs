// A real editor for tests: code-server with the packaged extension and a browser, with a user's actions and views.
import { execFile, spawn } from "node:child_process";
import { rmSync } from "node:fs";
import { access, mkdir, mkdtemp, readdir, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { basename, delimiter, dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { chromium } from "playwright-core";

/** @typedef {Record<string, unknown>} Settings */
/** @typedef {{ vsix: string, settings: Settings, environment?: Record<string, string> }} Options */

/** The programs of the repository's virtual environment. */
export const VENV = fileURLToPath(new URL("../../.venv/bin/", import.meta.url));

/** A file with a mark at the cursor. */
export const STACK = `class Stack:
    def __init__(self):
        self.items = []

    def push(self, item):
        ‸

    def pop(self):
        return self.items.pop()
`;

const CODE_SERVER = fileURLToPath(new URL("node_modules/code-server/out/node/entry.js", import.meta.url));
const FAILURES = fileURLToPath(new URL("failures/", import.meta.url));
const BROWSERS = ["chromium", "chromium-browser", "google-chrome"];
const CHROMIUM_FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
const TAB_WIDTH = 4;
const WINDOW = { width: 1100, height: 620 };
const PICTURE = { width: 700, height: 152 };

// Milliseconds, for two slow cores and a server that loads PyTorch.
export const START_TIMEOUT = 120_000;
const TIMEOUT = 30_000;
/** Time for processes to end. */
const GRACE = 2_000;
const TYPING_PAUSE = 40;
const POLL = 50;
const DRAWING = 150;

/** The editor's drawing of a blank. */
const NO_BREAK_SPACE = "\u00a0";

/** Unused keys for commands without a key. */
const KEYS = /** @type {const} */ ({
  "editor.action.inlineSuggest.trigger": "F1",
  "workbench.action.files.newUntitledFile": "F2",
  "notifications.clearAll": "F3",
  "workbench.action.revertAndCloseActiveEditor": "F4",
  "workbench.action.closeSidebar": "F6",
});
const KEYS_WITH = "Control+Alt+Shift+";

/** Settings without animations, pop-ups and network. Tested settings keep their defaults. */
const QUIET = {
  "breadcrumbs.enabled": false,
  "chat.commandCenter.enabled": false,
  "editor.accessibilitySupport": "off",
  "editor.cursorBlinking": "solid",
  "editor.minimap.enabled": false,
  "editor.parameterHints.enabled": false,
  "editor.quickSuggestions": { other: "off", comments: "off", strings: "off" },
  "extensions.autoCheckUpdates": false,
  "extensions.autoUpdate": false,
  "extensions.ignoreRecommendations": true,
  "files.autoSave": "off",
  "git.enabled": false,
  "telemetry.telemetryLevel": "off",
  "update.mode": "none",
  "window.commandCenter": false,
  "workbench.layoutControl.enabled": false,
  "workbench.startupEditor": "none",
  "workbench.tips.enabled": false,
};

/**
 * Starts code-server with the extension, and a browser with an empty folder.
 * @param {Options} options
 */
export async function startEditor(options) {
  const editor = new Editor(await mkdtemp(join(tmpdir(), "fim-server-e2e-")));
  process.once("exit", () => editor.abandon());
  for (const signal of ["SIGINT", "SIGTERM"]) {
    process.once(signal, () => process.exit(1));
  }
  try {
    await editor.start(options);
  } catch (error) {
    await editor.stop();
    throw error;
  }
  return editor;
}

export class Editor {
  /** @type {import("node:child_process").ChildProcess | undefined} */
  #server;
  /** @type {import("playwright-core").Browser | undefined} */
  #browser;
  /** @type {import("playwright-core").Page | undefined} */
  #page;
  #root;
  #address = "";
  /** @type {Record<string, string>} */
  #environment = {};
  #output = "";

  /** @param {string} root folder of the tests */
  constructor(root) {
    this.#root = root;
  }

  /** The open folder. */
  get folder() {
    return join(this.#root, "project");
  }

  get page() {
    if (this.#page === undefined) {
      throw new Error("the editor has not started");
    }
    return this.#page;
  }

  /** @param {Options} options */
  async start({ vsix, settings, environment = {} }) {
    this.#environment = environment;
    await mkdir(this.folder);
    await this.configure(settings);
    const bindings = Object.entries(KEYS).map(([command, key]) => ({
      key: (KEYS_WITH + key).replace("Control", "ctrl"),
      command,
    }));
    await this.#writeJson("user/User/keybindings.json", bindings);
    await this.#writeJson("config.yaml", {});
    if (!(await this.#codeServer(["--install-extension", vsix]))) {
      throw new Error(`${vsix} could not be installed:\n${this.#output}`);
    }
    this.#address = `127.0.0.1:${await freePort()}`;
    this.#server = this.#spawn([
      ...["--auth", "none", "--bind-addr", this.#address],
      ...["--disable-telemetry", "--disable-update-check", "--disable-workspace-trust", "--ignore-last-opened"],
    ]);
    await until("code-server to answer", () => isUp(`http://${this.#address}/healthz`), START_TIMEOUT);
    this.#browser = await chromium.launch({ executablePath: await findBrowser(), args: CHROMIUM_FLAGS });
    await this.renew();
  }

  /** Reloads the window, with a new language server. */
  async renew() {
    await this.#page?.close();
    this.#page = await this.#browser?.newPage({ viewport: WINDOW });
    this.page.setDefaultTimeout(TIMEOUT);
    await this.page.goto(`http://${this.#address}/?folder=${encodeURIComponent(this.folder)}`, {
      timeout: START_TIMEOUT,
    });
    await this.page.locator(".monaco-workbench .statusbar").waitFor({ timeout: START_TIMEOUT });
  }

  async stop() {
    await this.#browser?.close();
    const server = this.#server;
    if (server?.exitCode === null && this.#signal("SIGTERM")) {
      await Promise.race([new Promise((resolve) => server.once("exit", resolve)), sleep(GRACE)]);
    }
    this.abandon();
  }

  /** Ends all processes and removes all files at once. */
  abandon() {
    this.#signal("SIGKILL");
    rmSync(this.#root, { recursive: true, force: true, maxRetries: 5 });
  }

  /**
   * Signals code-server and its child processes, the extension host and the language server.
   * @param {NodeJS.Signals} name
   */
  #signal(name) {
    try {
      return this.#server?.pid !== undefined && process.kill(-this.#server.pid, name);
    } catch {
      return false; // nothing of it is left
    }
  }

  /**
   * Replaces the settings, which the editor watches.
   * @param {Settings} settings
   */
  async configure(settings) {
    // Some settings are read in one of the files only.
    await this.#writeJson("user/User/settings.json", { ...QUIET, ...settings });
    await this.#writeJson("user/Machine/settings.json", settings);
  }

  /** The logs of the extension and of code-server. */
  async logs() {
    const folder = join(this.#root, "user/logs");
    const names = await readdir(folder, { recursive: true }).catch(() => []);
    const ours = names.filter((name) => /fim-server\.fim-server.*\.log$|exthost\.log$/i.test(name)).sort();
    const texts = await Promise.all(
      ours.map(async (name) => `--- ${name}\n${await readFile(join(folder, name), "utf8")}`),
    );
    return [...texts, `--- code-server\n${this.#output}`].join("\n");
  }

  /**
   * Saves a picture and the logs of a failed test; returns the beginning of their names.
   * @param {string} name
   */
  async keepEvidence(name) {
    const base = FAILURES + name.replaceAll(/\W+/g, "-");
    await this.picture(`${base}.png`);
    await writeFile(`${base}.log`, await this.logs());
    return base;
  }

  /**
   * Runs the body of a test with some settings. If it fails, saves a picture and the logs, and starts anew.
   * @param {import("node:test").TestContext} context
   * @param {Settings} settings
   * @param {() => Promise<void>} body
   */
  async attempt(context, settings, body) {
    try {
      await this.configure(settings);
      await body();
      await this.closeAll();
    } catch (error) {
      context.diagnostic(`${await this.keepEvidence(context.name)}.png and .log show what happened`);
      await this.renew();
      throw error;
    }
  }

  // --- hands ------------------------------------------------------------------------------------------------------

  /**
   * Writes a file, opens it, and puts the cursor where the text has the mark `‸`.
   * @param {string} name
   * @param {string} marked
   */
  async open(name, marked) {
    const [left = "", right = ""] = marked.split("‸");
    const path = join(this.folder, name);
    await writeFile(path, left + right);
    const lines = left.split(/\r?\n/);
    const line = lines.at(-1) ?? "";
    const place = `${lines.length}:${line.replaceAll("\t", " ".repeat(TAB_WIDTH)).length + 1}`; // as the editor shows it
    await this.#show(`${path}:${lines.length}:${line.length + 1}`);
    await this.page.locator(`.tab.active[data-resource-name="${basename(name)}"]`).waitFor();
    await until(`the cursor at ${place} of ${name}`, async () => (await this.cursor()) === place);
    await this.page.locator(".editor-instance .monaco-editor.focused").waitFor();
  }

  /**
   * Writes a notebook, opens it, and puts the cursor into its first cell.
   * @param {string} name
   * @param {string} text
   */
  async openNotebook(name, text) {
    await writeFile(join(this.folder, name), text);
    await this.#show(join(this.folder, name));
    await this.page.locator(`.tab.active[data-resource-name="${name}"]`).waitFor();
    await this.page.locator(".notebook-editor .cell-editor-container .view-lines").first().click();
    await this.page.locator(".notebook-editor .monaco-editor.focused").waitFor();
  }

  /**
   * @param {string} text
   * @param {number} pause between two keys
   */
  async type(text, pause = TYPING_PAUSE) {
    await this.page.keyboard.type(text, { delay: pause });
  }

  /** @param {readonly string[]} keys */
  async press(...keys) {
    for (const key of keys) {
      await this.page.keyboard.press(key);
    }
  }

  /** @param {keyof typeof KEYS} command */
  async run(command) {
    await this.press(KEYS_WITH + KEYS[command]);
  }

  /**
   * Runs a command by its title, in the command palette.
   * @param {string} title
   */
  async choose(title) {
    await this.press("F1");
    await this.pick(title, ">");
  }

  /**
   * Chooses an entry of a list, once it is open.
   * @param {string} label
   * @param {string} prefix
   */
  async pick(label, prefix = "") {
    await this.page.locator(".quick-input-widget .quick-input-filter input").fill(prefix + label);
    await this.page.locator(".quick-input-list .monaco-list-row", { hasText: label }).first().click();
  }

  /**
   * Types into the input box.
   * @param {string} prompt
   * @param {string} text
   */
  async answer(prompt, text) {
    await this.page.locator(".quick-input-message", { hasText: prompt }).waitFor();
    const box = this.page.locator(".quick-input-widget .quick-input-box input");
    await box.fill(text);
    await box.press("Enter");
  }

  /**
   * Saves the active editor and reads its file.
   * @param {string} name
   */
  async save(name) {
    await this.press("Control+s");
    await this.page.locator(`.tab.active[data-resource-name="${name}"]:not(.dirty)`).waitFor();
    return await readFile(join(this.folder, name), "utf8");
  }

  /** Closes all editors and messages, without saving. */
  async closeAll() {
    await this.run("notifications.clearAll");
    const tabs = this.page.locator(".editor-group-container .tab");
    await until("all editors to be closed", async () => {
      await this.run("workbench.action.revertAndCloseActiveEditor");
      return (await tabs.count()) === 0;
    });
  }

  /** Ends the language server as a crash does. */
  async killServer() {
    const { stdout } = await promisify(execFile)("ps", ["-eo", "pid=,pgid=,args="]);
    const processes = stdout.split("\n").map((line) => line.trim().split(/\s+/));
    const ours = processes.filter(
      ([, group, ...args]) => Number(group) === this.#server?.pid && args.includes("serve"),
    );
    for (const [pid] of ours) {
      process.kill(Number(pid), "SIGKILL");
    }
    if (ours.length !== 1) {
      throw new Error(`${ours.length} language servers were running`);
    }
  }

  // --- eyes -------------------------------------------------------------------------------------------------------

  /** Line and column of the cursor in the status bar: `4:9`. */
  async cursor() {
    const [text = ""] = await this.page.locator('[id="status.editor.selection"]').allInnerTexts();
    const found = /Ln (\d+), Col (\d+)/.exec(text);
    return found ? `${found[1]}:${found[2]}` : "";
  }

  /** The visible lines of the active editor. */
  async text() {
    const text = await this.page.locator(".editor-instance .view-lines").first().innerText();
    return text.replaceAll(NO_BREAK_SPACE, " ");
  }

  /** The ghost text on the screen, "" if there is none. */
  async ghostText() {
    const text = await this.page.locator("[class*=ghost-text]").evaluateAll(readGhostText);
    return text.replaceAll(NO_BREAK_SPACE, " ");
  }

  /**
   * The ghost text once all its lines are drawn.
   */
  async settledGhostText() {
    let before = await this.ghostText();
    return await until("the ghost text to stay as it is", async () => {
      await sleep(DRAWING);
      const text = await this.ghostText();
      const isSettled = text === before;
      before = text;
      return isSettled && { text };
    }).then(({ text }) => text);
  }

  /**
   * Waits for ghost text that meets a condition.
   * @param {(text: string) => boolean} condition
   */
  async waitForGhostText(condition = () => true) {
    return await until("ghost text", async () => {
      const text = await this.settledGhostText();
      return text !== "" && condition(text) && text;
    });
  }

  /** @param {number} milliseconds */
  async expectNoGhostText(milliseconds) {
    for (const end = Date.now() + milliseconds; Date.now() < end; await sleep(POLL)) {
      const text = await this.ghostText();
      if (text !== "") {
        throw new Error(`unexpected ghost text: ${text}`);
      }
    }
  }

  /** The next edit on the screen: the text to be removed, the text beside it, and the way to it if it is out of sight. */
  async nextEdit() {
    const texts = await this.page.locator(".editor-instance .view-lines span").evaluateAll(readNextEdit);
    const [removed = "", added = "", way = ""] = texts.map((text) => text.replaceAll(NO_BREAK_SPACE, " "));
    return { removed, added, way };
  }

  /**
   * Waits for a next edit on the screen, or for none.
   * @param {{ removed?: string, added?: string, way?: string }} expected
   */
  async waitForNextEdit(expected) {
    const wanted = JSON.stringify({ removed: "", added: "", way: "", ...expected });
    let found = "";
    await until(
      `the next edit ${wanted}`,
      async () => {
        found = JSON.stringify(await this.nextEdit());
        return found === wanted;
      },
      TIMEOUT,
      () => `it is ${found}`,
    );
  }

  /** The extension's item in the status bar. */
  get statusItem() {
    return this.page.locator('.statusbar-item[id^="fim-server."]');
  }

  /**
   * Waits for a label of the status bar's item, as screen readers read it.
   * @param {RegExp} pattern
   */
  async waitForStatus(pattern) {
    let label = "";
    await until(
      `the status ${pattern}`,
      async () => {
        label =
          (await this.statusItem
            .first()
            .getAttribute("aria-label")
            .catch(() => null)) ?? "";
        return pattern.test(label);
      },
      START_TIMEOUT,
      () => `it is "${label}"`,
    );
    return label;
  }

  /** The texts of the visible messages. */
  async messages() {
    return await this.page.locator(".notification-list-item-message").allInnerTexts();
  }

  /** The document in the visible webview. */
  webview() {
    return this.page.frameLocator("iframe.webview.ready").frameLocator("iframe#active-frame");
  }

  /**
   * A picture of the window, or of its top with that height.
   * @param {string} path
   * @param {number} height
   */
  async picture(path, height = WINDOW.height) {
    await mkdir(dirname(path), { recursive: true });
    if (height > WINDOW.height) {
      await this.page.setViewportSize({ ...WINDOW, height });
      await sleep(POLL * 10); // the editor redraws
    }
    await this.page.screenshot({ path, clip: { x: 0, y: 0, width: WINDOW.width, height } });
    await this.page.setViewportSize(WINDOW);
  }

  /**
   * A picture of the lines around the cursor.
   * @param {string} path
   */
  async pictureOfCursor(path) {
    await mkdir(dirname(path), { recursive: true });
    const cursor = await this.page.locator(".editor-instance .monaco-editor.focused .cursor").first().boundingBox();
    const lines = await this.page.locator(".editor-instance .monaco-editor.focused").first().boundingBox();
    if (cursor === null || lines === null) {
      throw new Error("there is no cursor to take a picture of");
    }
    const { width, height } = PICTURE;
    const y = Math.max(lines.y, Math.min(cursor.y - height / 2, lines.y + lines.height - height));
    await this.page.screenshot({ path, clip: { x: lines.x, y, width, height } });
  }

  // --- the machinery ----------------------------------------------------------------------------------------------

  /**
   * @param {string} path
   * @param {unknown} value
   */
  async #writeJson(path, value) {
    const file = join(this.#root, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, JSON.stringify(value, undefined, 2));
  }

  /** @param {readonly string[]} args */
  #spawn(args) {
    const folders = ["--config", "config.yaml", "--user-data-dir", "user", "--extensions-dir", "extensions"];
    const ours = folders.map((word) => (word.startsWith("--") ? word : join(this.#root, word)));
    const child = spawn(process.execPath, [CODE_SERVER, ...ours, ...args], {
      detached: true, // a process group of its own
      env: { ...process.env, ...this.#environment },
      stdio: ["ignore", "pipe", "pipe"],
    });
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (data) => {
        this.#output += data;
      });
    }
    return child;
  }

  /**
   * Runs code-server to its end; returns true on success.
   * @param {readonly string[]} args
   */
  async #codeServer(args) {
    const child = this.#spawn(args);
    return (await new Promise((resolve) => child.once("exit", resolve))) === 0;
  }

  /**
   * Opens a file in the window, as the command line does. A new window is not known at once.
   * @param {string} path
   */
  async #show(path) {
    await until(`${path} to be opened`, () => this.#codeServer(["--reuse-window", path]), START_TIMEOUT);
    await this.run("workbench.action.closeSidebar");
  }
}

/**
 * Polls until there is an answer.
 * @template T
 * @param {string} what
 * @param {() => Promise<T>} ask
 * @param {number} [timeout]
 * @param {() => string} [details]
 * @returns {Promise<Exclude<T, false | "" | null | undefined>>}
 */
export async function until(what, ask, timeout = TIMEOUT, details = () => "") {
  for (const end = Date.now() + timeout; ; await sleep(POLL)) {
    const answer = await ask();
    if (answer) {
      return /** @type {Exclude<T, false | "" | null | undefined>} */ (answer);
    }
    if (Date.now() > end) {
      throw new Error(`waited ${timeout / 1000} s for ${what}; ${details()}`);
    }
  }
}

/**
 * Runs in the page. The first line is drawn among the editor's lines, further ones below it.
 * @param {Element[]} elements
 */
function readGhostText(elements) {
  const first = elements.filter((element) => element.closest(".view-zones") === null);
  const zones = new Set(elements.map((element) => element.closest(".view-zones .suggest-preview-text")));
  const below = [...zones].flatMap((zone) => [...(zone?.querySelectorAll(".view-line") ?? [])]);
  const lines = [first, ...below.map((line) => [line])];
  return lines.map((line) => line.map((element) => element.textContent).join("")).join("\n");
}

/**
 * Runs in the page: the text that is struck through, the text beside it, and the way to an edit out of sight.
 * @param {Element[]} elements
 */
function readNextEdit(elements) {
  const styles = elements.map((element) => ({ element, style: getComputedStyle(element) }));
  const removed = styles.filter(({ style }) => style.textDecorationLine === "line-through");
  const beside = elements
    .map((element) => getComputedStyle(element, "::after").content)
    .filter((content) => content.startsWith('"'))
    .map((content) => JSON.parse(content));
  const isWay = (/** @type {string} */ text) => /^[↑↓→] .*line/.test(text.replaceAll("\u00a0", " "));
  return [
    removed.map(({ element }) => element.textContent).join(""),
    beside.filter((text) => !isWay(text)).join(""),
    beside.filter(isWay).join(""),
  ];
}

/** @param {string} url */
async function isUp(url) {
  try {
    return (await fetch(url)).ok;
  } catch {
    return false;
  }
}

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" ? address?.port : undefined;
}

async function findBrowser() {
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  const candidates = [
    process.env["CHROMIUM"],
    ...folders.flatMap((folder) => BROWSERS.map((name) => join(folder, name))),
  ];
  for (const path of candidates.filter((candidate) => candidate !== undefined)) {
    if (
      await access(path).then(
        () => true,
        () => false,
      )
    ) {
      return path;
    }
  }
  throw new Error(`none of ${BROWSERS.join(", ")} is on the PATH`);
}

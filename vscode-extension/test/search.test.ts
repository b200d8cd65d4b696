import assert from "node:assert/strict";
import { test } from "node:test";
import type { StartSettings } from "../src/configuration";
import { installCommand } from "../src/finding/install";
import { type Found, findServer, isSameProgram, type Machine, type Missing, type Places } from "../src/finding/search";

const NOTHING_SET: StartSettings = { path: "", interpreter: "", args: [], logLevel: "" };

const PLACES: Places = {
  platform: "linux",
  selected: undefined,
  folders: ["/projects/project"],
  trusted: true,
  searchPath: "/usr/local/bin:/usr/bin",
};

/** A machine with these programs, and these interpreters that can import the package. */
function machineWith(programs: readonly string[], importing: readonly string[] = []): Machine {
  return {
    isExecutable: async (path) => programs.includes(path),
    canImport: async (interpreter) => importing.includes(interpreter),
  };
}

async function search(
  machine: Machine,
  places: Partial<Places> = {},
  settings: Partial<StartSettings> = {},
): Promise<Found | Missing> {
  return findServer({ ...NOTHING_SET, ...settings }, { ...PLACES, ...places }, machine);
}

function program(found: Found | Missing): string {
  assert.ok(found.kind === "found", found.kind === "missing" ? found.tried.join("\n") : "");
  return [`${found.origin}:`, found.program.command, ...found.program.leading].join(" ");
}

const EVERYWHERE = [
  "/opt/fim-server",
  "/envs/a/bin/python",
  "/envs/a/bin/fim-server",
  "/envs/b/bin/python",
  "/envs/b/bin/fim-server",
  "/projects/project/.venv/bin/fim-server",
  "/projects/project/venv/bin/fim-server",
  "/usr/bin/fim-server",
];

test("the order: path, interpreter, selected interpreter, workspace, PATH", async () => {
  const settings = { path: "/opt/fim-server", interpreter: "/envs/a/bin/python" };
  const selected = "/envs/b/bin/python";
  const machine = machineWith(EVERYWHERE);
  assert.equal(program(await search(machine, { selected }, settings)), "path: /opt/fim-server");
  assert.equal(
    program(await search(machine, { selected }, { ...settings, path: "" })),
    "interpreter: /envs/a/bin/fim-server",
  );
  assert.equal(program(await search(machine, { selected })), "selected: /envs/b/bin/fim-server");
  assert.equal(program(await search(machine)), "workspace: /projects/project/.venv/bin/fim-server");
  assert.equal(program(await search(machine, { folders: [] })), "search path: /usr/bin/fim-server");
});

test("venv after .venv, in every folder", async () => {
  const machine = machineWith(["/projects/other/venv/bin/fim-server"]);
  const folders = ["/projects/project", "/projects/other"];
  assert.equal(program(await search(machine, { folders })), "workspace: /projects/other/venv/bin/fim-server");
});

test("an interpreter without the program, but with the module, runs the module, away from the current folder", async () => {
  const machine = machineWith(["/envs/b/bin/python"], ["/envs/b/bin/python"]);
  const found = await search(machine, { selected: "/envs/b/bin/python" });
  assert.equal(program(found), "selected: /envs/b/bin/python -P -m fim_server");
});

test("a selected interpreter without the package is skipped", async () => {
  const machine = machineWith(["/envs/b/bin/python", "/usr/bin/fim-server"]);
  const found = await search(machine, { selected: "/envs/b/bin/python" });
  assert.equal(program(found), "search path: /usr/bin/fim-server");
});

test("the user's settings are binding", async () => {
  const machine = machineWith(["/envs/a/bin/python", "/usr/bin/fim-server"]);
  const wrongPath = await search(machine, {}, { path: "/nowhere/fim-server" });
  assert.match(wrongPath.kind === "missing" ? wrongPath.message : "", /fim-server\.path.*\/nowhere\/fim-server/);
  const wrongInterpreter = await search(machine, {}, { interpreter: "/nowhere/python" });
  assert.match(wrongInterpreter.kind === "missing" ? wrongInterpreter.message : "", /interpreter.*no program is there/);
  const empty = await search(machine, {}, { interpreter: "/envs/a/bin/python" });
  assert.match(empty.kind === "missing" ? empty.message : "", /not installed there/);
});

test("a set name is looked up on the PATH", async () => {
  const machine = machineWith(["/usr/bin/fim-dev", "/usr/bin/python3", "/usr/bin/fim-server"]);
  assert.equal(program(await search(machine, {}, { path: "fim-dev" })), "path: /usr/bin/fim-dev");
  assert.equal(program(await search(machine, {}, { interpreter: "python3" })), "interpreter: /usr/bin/fim-server");
});

test("nothing in an untrusted workspace runs", async () => {
  const inside = "/projects/project/.venv/bin/python";
  const machine = machineWith(
    [...EVERYWHERE, inside].filter((path) => path !== "/usr/bin/fim-server"),
    [inside],
  );
  const untrusted = { trusted: false, selected: inside, searchPath: "/projects/project/.venv/bin:/usr/bin" };
  const found = await search(machine, untrusted);
  assert.equal(found.kind, "missing");
  assert.ok(found.kind === "missing" && found.tried.some((line) => /not trusted/.test(line)));
  const roundabout = await search(machine, { ...untrusted, selected: "/projects/other/../project/.venv/bin/python" });
  assert.equal(roundabout.kind, "missing");
  const outside = await search(machine, { ...untrusted, selected: "/envs/b/bin/python" });
  assert.equal(program(outside), "selected: /envs/b/bin/fim-server");
});

test("a folder whose name only begins like the workspace's is not in the workspace", async () => {
  const machine = machineWith(["/projects/project-tools/bin/fim-server", "/projects/project-tools/bin/python"]);
  const found = await search(machine, { trusted: false, selected: "/projects/project-tools/bin/python" });
  assert.equal(program(found), "selected: /projects/project-tools/bin/fim-server");
});

test("relative folders of the PATH are skipped", async () => {
  const machine = machineWith(["./fim-server", "bin/fim-server", "/fim-server", "fim-server"]);
  assert.equal((await search(machine, { searchPath: ":.:bin" })).kind, "missing");
});

test("Windows", async () => {
  const places: Partial<Places> = {
    platform: "win32",
    folders: ["C:\\projects\\project"],
    searchPath: "C:\\tools;.;\\\\share\\bin",
  };
  const machine = machineWith([
    "C:\\conda\\python.exe",
    "C:\\conda\\Scripts\\fim-server.exe",
    "C:\\env\\Scripts\\python.exe",
    "C:\\env\\Scripts\\fim-server.exe",
  ]);
  assert.equal(
    program(await search(machine, { ...places, selected: "C:\\conda\\python.exe" })),
    "selected: C:\\conda\\Scripts\\fim-server.exe",
  );
  assert.equal(
    program(await search(machine, { ...places, selected: "C:\\env\\Scripts\\python.exe" })),
    "selected: C:\\env\\Scripts\\fim-server.exe",
  );
  assert.equal(
    program(await search(machineWith(["C:\\projects\\project\\.venv\\Scripts\\fim-server.exe"]), places)),
    "workspace: C:\\projects\\project\\.venv\\Scripts\\fim-server.exe",
  );
  assert.equal(
    program(await search(machineWith(["\\\\share\\bin\\fim-server.exe"]), places)),
    "search path: \\\\share\\bin\\fim-server.exe",
  );
  assert.equal(
    program(await search(machineWith(["C:\\x\\fim-server.exe"]), places, { path: "C:\\x\\fim-server" })),
    "path: C:\\x\\fim-server.exe",
  );
  const untrusted = { ...places, trusted: false, selected: "c:/PROJECTS/Project/env/Scripts/python.exe" };
  const inside = machineWith([
    "c:/PROJECTS/Project/env/Scripts/fim-server.exe",
    "c:/PROJECTS/Project/env/Scripts/python.exe",
  ]);
  assert.equal((await search(inside, untrusted)).kind, "missing");
});

test("without a server, all attempts are listed", async () => {
  const found = await search(machineWith([]));
  assert.ok(found.kind === "missing");
  assert.match(found.message, /not found/);
  const tried = found.tried.join("\n");
  for (const place of ["no Python extension", "/projects/project/.venv/bin/fim-server", "not on the PATH"]) {
    assert.ok(tried.includes(place), place);
  }
});

test("isSameProgram", () => {
  const one = { command: "/a", leading: ["-m", "x"] };
  assert.ok(isSameProgram(one, { command: "/a", leading: ["-m", "x"] }));
  assert.ok(!isSameProgram(one, { command: "/a", leading: [] }));
  assert.ok(!isSameProgram(one, { command: "/b", leading: ["-m", "x"] }));
  assert.ok(!isSameProgram(undefined, undefined));
});

test("the installation's command suits the terminal", () => {
  const cases: [interpreter: string | undefined, shell: string, command: string][] = [
    [undefined, "/bin/bash", "python"],
    ["/envs/a/bin/python", "/bin/zsh", "/envs/a/bin/python"],
    ["/my envs/it's/python", "/bin/bash", "'/my envs/it'\\''s/python'"],
    ["C:\\env\\python.exe", "C:\\Windows\\System32\\cmd.exe", "C:\\env\\python.exe"],
    ["C:\\my env\\python.exe", "C:\\Windows\\System32\\cmd.exe", '"C:\\my env\\python.exe"'],
    ["C:\\my env\\python.exe", "C:\\Program Files\\PowerShell\\7\\pwsh.exe", "& 'C:\\my env\\python.exe'"],
    ["C:\\env\\python.exe", "C:\\Program Files\\Git\\bin\\bash.exe", "'C:\\env\\python.exe'"],
    ["/x;rm -rf ~/python", "/bin/sh", "'/x;rm -rf ~/python'"],
    ["/$(x)/`y`/python", "/usr/bin/fish", "'/$(x)/`y`/python'"],
  ];
  for (const [interpreter, shell, command] of cases) {
    assert.equal(installCommand(interpreter, shell), `${command} -m pip install fim-server`, `${interpreter} ${shell}`);
  }
});

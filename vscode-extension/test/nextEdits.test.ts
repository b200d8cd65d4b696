import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { NextEdits, PAUSE_MS, type Surroundings } from "../src/nextEdit/machine";
import { knowsNextEdits, type NextEdit, readNextEdit } from "../src/protocol";

function editOn(line: number): NextEdit {
  const start = { line, character: 4 };
  const range = { start, end: { line, character: 10 } };
  return { uri: "file:///a.py", version: 1, range, text: "items", arguments: [{ id: `${line}` }] };
}

/** An editor that the test moves, and a server that it answers for. */
class World implements Surroundings {
  wanted = true;
  shown = false;
  requested = false;
  fits = true;
  cursorLine = 0;
  readonly log: string[] = [];
  private readonly questions: ((edit: NextEdit | undefined) => void)[] = [];
  private screen = "";
  readonly machine = new NextEdits(this);

  isWanted = () => this.wanted;
  hasGhostText = (isRequested: boolean) => this.shown || (isRequested && this.requested);
  isAtCursor = (edit: NextEdit) => this.cursorLine === edit.range.start.line;
  reportNone = () => void this.log.push("none");
  tell = (edit: NextEdit, isAccepted: boolean) =>
    void this.log.push(`${isAccepted ? "accepted" : "dismissed"} ${edit.range.start.line}`);

  ask = (isExplicit: boolean, signal: AbortSignal) => {
    this.log.push(isExplicit ? "ask for the user" : "ask");
    signal.addEventListener("abort", () => this.log.push("cancel"));
    return new Promise<NextEdit | undefined>((resolve) => this.questions.push(resolve));
  };

  jump = (edit: NextEdit) => {
    this.cursorLine = edit.range.start.line;
    this.log.push(`jump ${this.cursorLine}`);
  };

  apply = async (edit: NextEdit) => {
    this.machine.changed(); // the editor reports the change before it says that it was made
    if (this.fits) {
      this.log.push(`apply ${edit.range.start.line}`);
    }
    return this.fits;
  };

  show = (edit: NextEdit | undefined, takesKeys: boolean) => {
    const screen = `${edit ? `show ${edit.range.start.line}` : "hide"}${takesKeys ? " with keys" : ""}`;
    if (screen !== this.screen) {
      this.screen = screen;
      this.log.push(screen);
    }
  };

  /** Answers the oldest open question, and lets the machine go on. */
  async answer(edit: NextEdit | undefined): Promise<void> {
    const [question] = this.questions.splice(0, 1);
    assert.ok(question !== undefined, "nothing was asked");
    question(edit);
    await settled();
  }

  /** Events since the last call. */
  since(): string[] {
    return this.log.splice(0);
  }
}

async function settled(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) {
    await Promise.resolve();
  }
}

/** A world in which the edit on a line is shown. */
async function showing(context: TestContext, line: number): Promise<World> {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const world = new World();
  world.machine.changed();
  context.mock.timers.tick(PAUSE_MS);
  await world.answer(editOn(line));
  assert.deepEqual(world.since(), ["hide", "ask", `show ${line} with keys`]);
  return world;
}

test("the server is asked once the user pauses, and a further change cancels", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const world = new World();
  world.machine.changed();
  context.mock.timers.tick(PAUSE_MS - 1);
  world.machine.changed();
  context.mock.timers.tick(PAUSE_MS - 1);
  assert.deepEqual(world.since(), ["hide"]);
  context.mock.timers.tick(1);
  assert.deepEqual(world.since(), ["ask"]);
  world.machine.changed();
  assert.deepEqual(world.since(), ["cancel"]);
  await world.answer(editOn(3));
  assert.deepEqual(world.since(), [], "the answer is for an older text");
  context.mock.timers.tick(PAUSE_MS);
  await world.answer(undefined);
  assert.deepEqual(world.since(), ["ask"], "no edit is no message");
});

test("where edits are not wanted, only the user's command asks, and hears of no edit", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const world = new World();
  world.wanted = false;
  world.machine.changed();
  context.mock.timers.tick(PAUSE_MS);
  void world.machine.request();
  await world.answer(undefined);
  assert.deepEqual(world.since(), ["hide", "ask for the user", "none"]);
  void world.machine.request();
  await world.answer(editOn(3));
  assert.deepEqual(world.since(), ["ask for the user", "show 3 with keys"]);
});

test("Tab jumps, accepts, and walks on", async (context) => {
  const world = await showing(context, 3);
  await world.machine.tab();
  assert.deepEqual(world.since(), ["jump 3"]);
  void world.machine.tab();
  await settled();
  assert.deepEqual(world.since(), ["hide with keys", "apply 3", "accepted 3", "ask"]);
  await world.answer(editOn(5));
  assert.deepEqual(world.since(), ["show 5 with keys"]);
  await world.machine.tab();
  void world.machine.tab();
  await settled();
  await world.answer(undefined);
  assert.deepEqual(world.since(), ["jump 5", "hide with keys", "apply 5", "accepted 5", "ask", "hide"]);
  context.mock.timers.tick(PAUSE_MS);
  assert.deepEqual(world.since(), [], "the accepted edit is no change of the user");
});

test("Tab before the next edit has come jumps to it, and accepts nothing unseen", async (context) => {
  for (const [line, expected] of [
    [5, ["show 5 with keys", "jump 5"]],
    [3, ["show 3 with keys"]],
  ] as const) {
    const world = await showing(context, 3);
    world.cursorLine = 3;
    void world.machine.tab();
    await settled();
    await world.machine.tab();
    await world.machine.tab();
    world.since();
    await world.answer(editOn(line));
    assert.deepEqual(world.since(), expected);
    context.mock.timers.reset();
  }
});

test("an edit that fits no more is withdrawn", async (context) => {
  const world = await showing(context, 3);
  world.cursorLine = 3;
  world.fits = false;
  await world.machine.tab();
  assert.deepEqual(world.since(), ["hide with keys", "hide"]);
});

test("a dismissed edit is told to the server", async (context) => {
  const world = await showing(context, 3);
  world.machine.dismiss();
  world.machine.dismiss();
  assert.deepEqual(world.since(), ["hide", "dismissed 3"]);
});

test("a change, another editor or a stopped server withdraws the edit without a word", async (context) => {
  const world = await showing(context, 3);
  world.machine.changed();
  assert.deepEqual(world.since(), ["hide"]);
  world.machine.leave();
  context.mock.timers.tick(PAUSE_MS);
  assert.deepEqual(world.since(), [], "leaving ends the pause");
  void world.machine.request();
  world.machine.leave();
  await world.answer(editOn(3));
  assert.deepEqual(world.since(), ["ask for the user", "cancel"]);
});

test("an editor that is left while an edit is accepted asks for no other", async (context) => {
  const world = await showing(context, 3);
  world.cursorLine = 3;
  void world.machine.tab();
  world.machine.leave();
  await settled();
  assert.deepEqual(world.since(), ["hide with keys", "apply 3", "hide", "accepted 3"]);
});

test("ghost text goes first, and the edit comes once it is gone", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const world = new World();
  world.requested = true;
  world.machine.changed();
  context.mock.timers.tick(PAUSE_MS);
  assert.deepEqual(world.since(), ["hide"]);
  world.requested = false;
  world.machine.ghostTextChanged();
  assert.deepEqual(world.since(), ["ask"]);
  world.requested = true;
  await world.answer(editOn(3));
  assert.deepEqual(world.since(), [], "a request for ghost text has begun");
  world.requested = false;
  world.machine.ghostTextChanged();
  await world.answer(editOn(3));
  assert.deepEqual(world.since(), ["ask", "show 3 with keys"]);
  world.requested = true;
  world.machine.ghostTextChanged();
  assert.deepEqual(world.since(), [], "it is only requested");
  world.shown = true;
  world.machine.ghostTextChanged();
  assert.deepEqual(world.since(), ["hide"]);
  world.shown = false;
  world.requested = false;
  world.wanted = false;
  world.machine.ghostTextChanged();
  assert.deepEqual(world.since(), [], "the cursor has moved to a place without edits");
});

test("the server's answer is read", () => {
  const [start, end] = [
    { line: 3, character: 4 },
    { line: 3, character: 10 },
  ];
  const edit = {
    text: "items",
    range: { start, end },
    textDocument: { uri: "file:///a.py", version: 7 },
    command: { title: "", command: "fim-server.editAccepted", arguments: [{ id: "12" }] },
  };
  assert.deepEqual(readNextEdit({ edits: [edit, edit] }), {
    uri: "file:///a.py",
    version: 7,
    range: { start, end },
    text: "items",
    arguments: [{ id: "12" }],
  });
  for (const none of [null, undefined, {}, { edits: [] }, { edits: null }, { edits: ["items"] }, []]) {
    assert.equal(readNextEdit(none), undefined);
  }
  assert.deepEqual(readNextEdit({ edits: [{ range: { start: { line: "3" } } }] })?.range.start, {
    line: 0,
    character: 0,
  });
  assert.ok(
    knowsNextEdits({
      capabilities: { executeCommandProvider: { commands: ["fim-server.accepted", "fim-server.editAccepted"] } },
    }),
  );
  assert.ok(!knowsNextEdits({ capabilities: {} }));
  assert.ok(!knowsNextEdits(undefined));
});

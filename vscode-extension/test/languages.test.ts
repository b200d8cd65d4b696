import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { isGlob, isNamedBy } from "../src/globs";
import { languageRows } from "../src/languageList";
import { readLanguages } from "../src/protocol";

test("keys with other signs than names are globs", () => {
  assert.deepEqual(["python", "c++", "c#", "objective-c", "日本"].map(isGlob), Array(5).fill(false));
  assert.deepEqual(["*.md", "a/b", "Makefile.am", "?", "[a]"].map(isGlob), Array(5).fill(true));
});

interface Case {
  readonly glob: string;
  readonly named: readonly string[];
  readonly others: readonly string[];
}

// The server is tested with the same cases.
const CASES: readonly Case[] = JSON.parse(readFileSync("../tests/cases/globs.json", "utf8"));

for (const { glob, named, others } of CASES) {
  test(`the glob ${glob}`, () => {
    for (const file of named) {
      assert.ok(isNamedBy(file, glob), file);
    }
    for (const file of others) {
      assert.ok(!isNamedBy(file, glob), file);
    }
  });
}

test("a text that is no glob names nothing", () => {
  assert.ok(!isNamedBy("a", "[z-a]"));
});

const KNOWN = readLanguages([
  { name: "python", ids: ["python"], guarantee: "exact", trigger: "automatic", learnt: true },
  { name: "tsx", ids: ["tsx", "typescriptreact"], guarantee: "exact", trigger: "manual", learnt: false },
  { name: "c", ids: ["c"], guarantee: "balanced", trigger: "manual", learnt: false },
  { name: "later", ids: ["later"], guarantee: "a new one" },
  { ids: ["nameless"] },
  5,
]);

test("languages are listed with their guarantee, the active one first", () => {
  const read = (name: string) => (name === "languages" ? { c: "off" } : undefined);
  const rows = languageRows(KNOWN, "makefile", read, ["python"]);
  assert.deepEqual(
    rows.map(({ id }) => id),
    ["makefile", "c", "later", "python", "typescriptreact"],
  );
  const [makefile, c, later, python] = rows;
  assert.equal(python?.label, "Python");
  assert.equal(python?.description, "while you type");
  assert.match(python?.detail ?? "", /^guarantee exact: the whole file parses/);
  assert.equal(c?.description, "off, the model does not know it");
  assert.match(c?.detail ?? "", /^guarantee balanced: brackets/);
  assert.equal(later?.detail, "guarantee a new one");
  assert.equal(makefile?.description, "on request, the model does not know it");
  assert.match(makefile?.detail ?? "", /^guarantee none: .*has no grammar/);
});

test("without a server only the active language is listed", () => {
  assert.deepEqual(
    languageRows(null, "python", () => undefined, null).map(({ id, detail }) => [id, detail]),
    [["python", ""]],
  );
  assert.deepEqual(
    languageRows(null, undefined, () => undefined, null),
    [],
  );
});

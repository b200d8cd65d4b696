import assert from "node:assert/strict";
import { test } from "node:test";
import { configurationPaths, readConfiguration } from "../src/languageData";

test("the files of a language are those that its contributions name", () => {
  const manifest = {
    contributes: {
      languages: [
        { id: "groovy", extensions: [".groovy"], configuration: "./groovy.json" },
        { id: "other", configuration: "./other.json" },
        { id: "groovy", configuration: "./more.json" },
        { id: "groovy", configuration: 5 },
        { id: "groovy" },
        null,
      ],
    },
  };
  assert.deepEqual(configurationPaths(manifest, "groovy"), ["./groovy.json", "./more.json"]);
  for (const wrong of [undefined, null, 5, {}, { contributes: [] }, { contributes: { languages: {} } }]) {
    assert.deepEqual(configurationPaths(wrong, "groovy"), []);
  }
});

test("a configuration is JSON with comments and last commas", () => {
  const text = `\uFEFF{
    // "brackets": [],
    "comments": { "lineComment": "//", "blockComment": ["/*", "*/"], /* "x" */ },
    "brackets": [["(", ")"], ["[", "]",],], // the last one
    "autoClosingPairs": [{ "open": "\\"", "close": "\\"" }, ["'", "'"]],
    "onEnterRules": [],
  }`;
  assert.deepEqual(readConfiguration(text), {
    comments: { lineComment: "//", blockComment: ["/*", "*/"] },
    brackets: [
      ["(", ")"],
      ["[", "]"],
    ],
    autoClosingPairs: [{ open: '"', close: '"' }, ["'", "'"]],
  });
});

test("other texts are no configuration", () => {
  for (const text of ["", "[]", "null", "{", '{"brackets": [}', "/*".repeat(100_000), '"\\"'.repeat(100_000)]) {
    assert.equal(readConfiguration(text), undefined);
  }
});

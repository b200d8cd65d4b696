import assert from "node:assert/strict";
import { test } from "node:test";
import { unclosed } from "../src/explain/brackets";
import { grouped, type LineText, picture, spoken } from "../src/explain/levels";
import { readFromPage } from "../src/explain/messages";
import {
  announcement,
  blanksShown,
  explanationHtml,
  failureHtml,
  type Place,
  shellHtml,
  verdictHtml,
} from "../src/explain/page";
import { escapeHtml, html } from "../src/html";
import { type Explanation, readExplanation } from "../src/protocol";

const SOURCE = `class A:
    x = 1

    def area(self, shape):
        for a in shape:
            total = multiply(a.width, [max(a.x, '(',
                    a.y)],
        3)
`;

function linesOf(source: string): LineText {
  const lines = source.split("\n");
  return (line) => lines[line];
}

const PLACE: Place = { fileName: "area.py", lineText: linesOf(SOURCE) };

function explanation(fields: Record<string, unknown> = {}): Explanation {
  const read = readExplanation({
    uri: "file:///area.py",
    position: { line: 6, character: 23 },
    language: "python",
    guarantee: "exact",
    diagnostics: [],
    ignored: [],
    inside: null,
    expected: ['")"', '"and"', "NAME"],
    openLeft: [
      { name: "arguments", line: 5, text: "a.x, '('," },
      { name: "call", line: 5, text: "max(a.x, '('," },
      { name: "starred_items", line: 5, text: "max(a.x, '('," },
      { name: "atom", line: 5, text: "[max(a.x, '('," },
      { name: "arguments", line: 5, text: "a.width, [max(a.x, '('," },
      { name: "call", line: 5, text: "multiply(a.width, [max(a.x, '('," },
      { name: "assignment", line: 5, text: "total = multiply(a.width, [max(a.x, '('," },
      { name: "block", line: 5, text: "total = multiply(a.width, [max(a.x, '('," },
      { name: "for_stmt", line: 4, text: "for a in shape:" },
      { name: "block", line: 4, text: "for a in shape:" },
      { name: "function_def", line: 3, text: "def area(self, shape):" },
      { name: "block", line: 1, text: "x = 1" },
      { name: "class_def", line: 0, text: "class A:" },
    ],
    openRight: [
      { text: ")", line: 6 },
      { text: "]", line: 6 },
      { text: ")", line: 7 },
    ],
    grammar: "<middle> ::= NAME",
    shortest: "",
    candidates: [
      { text: ")", probability: 0.4, allowed: true, reason: null },
      { text: "]", probability: 0.004, allowed: false, reason: '"]" cannot come here' },
    ],
    ...fields,
  });
  assert.ok(read !== undefined);
  return read;
}

function page(fields: Record<string, unknown> = {}, place = PLACE): string {
  return explanationHtml(explanation(fields), place).toString();
}

test("unclosed brackets, not those in strings and comments", () => {
  const cases: [string, string, string?][] = [
    ["f(", "("],
    ["f(a[0], {", "({"],
    ["f(')', \"]\" # )\n", "("],
    ['f("""\n)""", [', "(["],
    ["f('it\\'s )'", "("],
    ["f(f'{x(", "({("], // a string that is not closed is where the cursor is
    ["f) ]", ""],
    ["", ""],
    ["f( # )", "(", "python 3.11"],
    ['f(`)\n`, \')\', "\\")", // )\n /* )\n) */ [', "([", "go"],
    ['f("""\n)" \\""" """, \')\', // )\n /* ) */ {', "({", "java"],
    ["#[derive(Debug)]\nfn f<'a>(s: &'a [u8", "([", "rust"],
    [`f(')', '\\'', '\\u{7D}', b'}', "\n)\\"", r#"")"#, br"\\", // )\n /* ) */ {`, "({", "rust"],
    ['{"#": ["\\"]", \'', "{[", "json"],
    ["f(')', \")\", // )\n /* ) */ `) ${'}'} (` + {", "({", "javascript"],
    ["f(`( ${g[`${1}", "({[", "typescript"], // the texts of templates are skipped, their code is not
    ["`\\` ( $( ${(", "{(", "javascript"],
    ["f(`(", "(", "javascript"],
    ["f(s.split(/[(/]\\(/g), a / (b / [", "(([", "javascript"],
    ["return /[{]/.test(", "(", "typescript"],
    ['const a = (<p class="(">it\'s (</p>', "(", "jsx"],
    ["useState<Item>({ a: <>( {x(", "({{(", "tsx"],
    ["f<T>(a > (b", "((", "typescript"],
    ["f('('", "((", "cobol"], // of other languages only the brackets are known
  ];
  for (const [source, expected, language = "python"] of cases) {
    assert.equal(unclosed(source, language).join(""), expected, source);
  }
});

test("the picture: boxes from the outside in, closers at the bracket they close", () => {
  const { levels, unopened } = picture(explanation(), PLACE.lineText);
  assert.deepEqual(
    levels.map(({ names, line, text, brackets }) => [
      names.join(">"),
      line,
      text,
      brackets.map(({ opener, closer }) => `${opener}${closer?.text ?? "?"}${closer?.line ?? ""}`).join(" "),
    ]),
    [
      ["class_def>block", 0, "class A:", ""],
      ["function_def>block", 3, "def area(self, shape):", ""],
      ["for_stmt>block", 4, "for a in shape:", ""],
      ["assignment", 5, "total =", ""],
      ["call", 5, "multiply(", "()7"],
      ["arguments", 5, "a.width,", ""],
      ["atom", 5, "[", "[]6"],
      ["starred_items>call", 5, "max(", "()6"],
      ["arguments", 5, "a.x, '(',", ""],
    ],
  );
  assert.deepEqual(unopened, []);
});

test("a block shares the box of its construct", () => {
  const source = "func total(values []int) int {\n\tfor _, value := range values {\n\t\t{\n\t\t\tsum += ";
  const blocks = {
    language: "go",
    position: { line: 3, character: 10 },
    openLeft: [
      { name: "block", line: 2, text: "{" },
      { name: "block", line: 1, text: "{" },
      { name: "for", line: 1, text: "for _, value := range values {" },
      { name: "block", line: 0, text: "{" },
    ],
    openRight: [
      { text: "}", line: 4 },
      { text: "}", line: 5 },
      { text: "}", line: 6 },
    ],
  };
  const { levels, unopened } = picture(explanation(blocks), linesOf(source));
  assert.deepEqual(
    levels.map(({ names, line, brackets }) => [
      names.join(">"),
      line,
      brackets.map(({ opener, closer }) => `${opener}${closer?.text ?? "?"}${closer?.line ?? ""}`).join(" "),
    ]),
    [
      ["block", 0, "{}6"],
      ["for>block", 1, "{}5"],
      ["block", 2, "{}4"],
    ],
  );
  assert.deepEqual(unopened, []);
});

test("a bracket that the right side leaves open is for the text to close", () => {
  const { levels, unopened } = picture(explanation({ openRight: [] }), PLACE.lineText);
  assert.equal(levels.flatMap(({ brackets }) => brackets).filter(({ closer }) => closer === undefined).length, 3);
  assert.deepEqual(unopened, []);
});

test("a closer without a bracket on the left is for the text to open", () => {
  const openRight = [
    { text: "}", line: 6 },
    { text: ")", line: 7 },
  ];
  const fields = { position: { line: 0, character: 2 }, openLeft: [{ name: "call", line: 0, text: "f(" }], openRight };
  const { levels, unopened } = picture(explanation(fields), linesOf("f("));
  assert.deepEqual(levels[0]?.brackets, [{ opener: "(", closer: { text: ")", line: 7 } }]);
  assert.deepEqual(unopened, [{ text: "}", line: 6 }]);
  const top = picture(explanation({ openLeft: [], openRight }), linesOf(""));
  assert.deepEqual(top, { levels: [], unopened: openRight });
});

test("a bracket on a later line of its construct is found, and texts may be cut", () => {
  const source = `value = \\\n    call(\n  ${"a".repeat(80)}`;
  const fields = {
    position: { line: 2, character: 82 },
    openLeft: [
      { name: "arguments", line: 2, text: "a".repeat(60) },
      { name: "assignment", line: 0, text: "value = \\" },
    ],
    openRight: [{ text: ")", line: 3 }],
  };
  const { levels, unopened } = picture(explanation(fields), linesOf(source));
  assert.equal(levels[0]?.brackets[0]?.closer?.line, 3);
  assert.deepEqual(unopened, []);
});

test("spoken", () => {
  assert.equal(spoken("function_def"), "function definition");
  assert.equal(spoken("if_stmt"), "if statement");
  assert.equal(spoken("starred_items"), "starred items");
});

test("expected lexemes are grouped", () => {
  assert.deepEqual(grouped(['"and"', '"("', '"_"', '"""', "NAME", '"ß"']), {
    keywords: ["and", "ß"],
    symbols: ["(", "_", '"'],
    lexemes: [{ words: "name", names: ["NAME"] }],
  });
});

test("lexemes have words, and equal words appear once", () => {
  const names = ["NAME", "F_S", "F_RDDD", "T_D", "_NEWLINE", "_DEDENT", "S_END", "IMAGINARY", "LINE_JOIN"];
  assert.deepEqual(
    grouped(names).lexemes.map(({ words }) => words),
    [
      "name",
      "f-string",
      "t-string",
      "line break",
      "end of the block",
      "rest of the string",
      "imaginary number",
      "line join",
    ],
  );
  assert.deepEqual(grouped(names).lexemes[1]?.names, ["F_S", "F_RDDD"]);
});

test("the page shows place, expected lexemes and guarantee", () => {
  const content = page({
    guarantee: "partial",
    diagnostics: ["line 12: no"],
    ignored: [
      { line: 11, count: 2 },
      { line: 20, count: 1 },
    ],
    inside: "string",
  });
  for (const words of [
    "<h1>area.py:7:24</h1>",
    "Python",
    'class="guarantee partial">partial</strong>: the rest of the file parses (if balanced: closes) with the text; broken',
    "lines 12 to 13",
    "line 21",
    "line 12: no",
    "inside a string",
    "What may come here",
    "Where you are",
    "Next tokens of the model",
    "Nothing is needed",
    "&lt;middle&gt; ::= NAME",
  ]) {
    assert.ok(content.includes(words), words);
  }
});

test("every line number is a link and counts from 1", () => {
  const buttons = [...page().matchAll(/data-line="(\d+)">([^<]*)</g)].map(([, line, words]) => `${line}: ${words}`);
  assert.ok(buttons.includes("0: line 1"), buttons.join());
  assert.ok(buttons.includes("7: line 8"), buttons.join());
  assert.equal(buttons.length, 9 + 3);
});

test("candidates: allowed ones and refused ones with their reason", () => {
  const content = page();
  assert.match(content, /<span class="allowed">allowed<\/span>/);
  assert.match(content, /<span class="refused">refused<\/span><span class="reason">: &quot;\]&quot; cannot come here/);
  assert.match(content, /40 %/);
  assert.match(content, /&lt;1 %/);
  assert.match(content, /<rect class="fill" width="40.0"/);
  assert.match(page({ candidates: [{ text: "", probability: 1, allowed: true }] }), /<i>the end<\/i>/);
});

test("the likeliest lexeme precedes the list", () => {
  const content = page({ likely: '")"' });
  const [before = "", after = ""] = content.split("Most likely");
  assert.ok(!before.includes("Symbols"));
  assert.match(after, /^<\/h3><ul class="chips likely"><li><code>\)<\/code><\/li><\/ul>/);
  assert.match(page({ likely: "NAME" }), /Most likely<\/h3><ul class="chips likely"><li title="[^"]*"><code>name</);
  assert.doesNotMatch(page({ likely: null }), /Most likely/);
  assert.match(announcement(explanation({ likely: '")"' }), PLACE), /3 things may come, \) most likely\./);
});

test("empty cases", () => {
  const nothing = readExplanation({});
  assert.ok(nothing !== undefined);
  const content = explanationHtml(nothing, { fileName: "x.py", lineText: () => undefined }).toString();
  for (const words of ["the end of the file", "Nothing is open", "Unknown: no model", "None was found", "x.py:1:1"]) {
    assert.ok(content.includes(words), words);
  }
  assert.ok(!content.includes("<details"));
  assert.match(page({ expected: [], inside: "comment" }), /Any text of the comment/);
  assert.equal(readExplanation(null), undefined);
  assert.equal(readExplanation([]), undefined);
});

const EVIL = `</code><script>alert("x")</script><img src=x onerror='y'>&amp;`;

test("the user's code is never markup", () => {
  const content = page(
    {
      language: EVIL,
      diagnostics: [EVIL, { message: EVIL }],
      expected: [EVIL, `"${EVIL}"`],
      likely: `"${EVIL}"`,
      openLeft: [{ name: EVIL, line: 0, text: `${EVIL}(` }],
      openRight: [
        { text: EVIL, line: 0 },
        { text: ")", line: 0 },
      ],
      position: { line: 0, character: 3 },
      grammar: EVIL,
      shortest: EVIL,
      candidates: [{ text: EVIL, probability: 0.5, allowed: false, reason: EVIL }],
    },
    { fileName: EVIL, lineText: () => EVIL },
  );
  assert.doesNotMatch(content, /<script|<img|onerror='|&amp;amp;amp;/);
  assert.ok(content.split("&lt;script&gt;").length > 8);
  for (const markup of [failureHtml(EVIL), verdictHtml(EVIL, { viable: false, complete: false, rejectedAt: 3 })]) {
    assert.doesNotMatch(markup.toString(), /<script|<img/);
  }
});

test("the shell loads only its own files and runs only the script with the nonce", () => {
  const shell = {
    cspSource: "https://csp",
    nonce: "n0nce",
    styleUri: "https://csp/a.css",
    scriptUri: "https://csp/a.js",
  };
  const whole = shellHtml(shell, html`<p>content</p>`);
  assert.match(whole, /default-src 'none'|default-src &#39;none&#39;/);
  assert.equal(whole.match(/<script/g)?.length, 1);
  assert.match(whole, /<script nonce="n0nce" src="https:\/\/csp\/a\.js">/);
  assert.match(whole, /script-src &#39;nonce-n0nce&#39;/);
  assert.doesNotMatch(whole, /unsafe|style="|\son\w+="/);
  assert.match(whole, /<main id="content"><p>content<\/p><\/main>/);
  assert.doesNotMatch(page(), /style="|\son\w+="/);
});

test("html escapes its parts, joins lists and drops null", () => {
  assert.equal(html`<b>${"<"}</b>${[html`<i>`, "&", 1]}${null}${undefined}`.toString(), "<b>&lt;</b><i>&amp;1");
  assert.equal(escapeHtml(`<>&"'`), "&lt;&gt;&amp;&quot;&#39;");
});

test("blanks are visible and named for screen readers", () => {
  const shown = blanksShown("  a b\n\t").map(String).join("");
  assert.match(shown, /aria-label="2 blanks">··</);
  assert.match(shown, /a b/);
  assert.match(shown, /aria-label="line break">⏎<\/span>\n/);
  assert.match(shown, /aria-label="tab">⇥</);
  assert.equal(blanksShown("").length, 0);
});

test("large grammars are cut in the page", () => {
  const content = page({ grammar: "x".repeat(300_000) });
  assert.ok(content.length < 200_000);
  assert.match(content, /The first 100,000 characters of 300,000 characters/);
});

test("verdicts", () => {
  const words = (viable: boolean, complete: boolean, rejectedAt: number | null, text = "a😀]b") =>
    verdictHtml(text, { viable, complete, rejectedAt }).toString();
  assert.match(words(true, true, null), /the file parses with it/);
  assert.match(words(true, false, null), /needs more after it/);
  assert.match(words(false, false, 2), /<code>a😀<mark>\]b<\/mark><\/code>/);
  assert.match(words(false, false, 99), /<mark>/);
  assert.match(words(false, false, null), /does not fit/);
  assert.match(verdictHtml("x", null).toString(), /no verdict/);
});

test("the announcement is one sentence", () => {
  assert.equal(announcement(explanation(), PLACE), "area.py, line 7, column 24, inside arguments: 3 things may come.");
});

test("messages of the page are validated", () => {
  assert.deepEqual(readFromPage({ type: "reveal", line: 3 }), { type: "reveal", line: 3 });
  assert.deepEqual(readFromPage({ type: "try", text: "x" }), { type: "try", text: "x" });
  assert.deepEqual(readFromPage({ type: "pin", pinned: true }), { type: "pin", pinned: true });
  assert.deepEqual(readFromPage({ type: "ready" }), { type: "ready" });
  for (const value of [
    null,
    "ready",
    {},
    { type: "reveal", line: "3" },
    { type: "reveal", line: 0.5 },
    { type: "no" },
  ]) {
    assert.equal(readFromPage(value), undefined);
  }
});

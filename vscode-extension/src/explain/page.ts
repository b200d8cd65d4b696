// The explanation as HTML, readable without scripts. Scripts reveal lines, copy the grammar and try texts.
import { html, type Markup, type Part } from "../html";
import type { Candidate, Closer, Explanation, Verdict } from "../protocol";
import { counted, GUARANTEE_WORDS, languageName, percentage } from "../words";
import { grouped, type Level, type Lexeme, type LineText, type OpenBracket, picture, spoken } from "./levels";

/** Facts about the cursor's place that the explanation lacks. */
export interface Place {
  readonly fileName: string;
  readonly lineText: LineText;
}

/** The whole page. It loads the extension's own styles and script only, and sends nothing. */
export interface Shell {
  readonly cspSource: string;
  readonly nonce: string;
  readonly styleUri: string;
  readonly scriptUri: string;
}

/** Length at which the page cuts a grammar. Copying takes the whole grammar. */
const MOST_GRAMMAR_CHARACTERS = 100_000;

export function shellHtml(shell: Shell, content: Markup): string {
  const policy = `default-src 'none'; style-src ${shell.cspSource}; script-src 'nonce-${shell.nonce}'`;
  return html`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="UTF-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1.0">
<title>fim-server: explanation</title>
<link rel="stylesheet" href="${shell.styleUri}">
</head>
<body>
<div class="bar">
<button type="button" id="pin" aria-pressed="false" title="Keep this explanation while the cursor moves on">Pin</button>
<form id="try"><label for="text">Would this fit?</label>
<input id="text" type="text" spellcheck="false" autocomplete="off" placeholder="text for the cursor">
<button type="submit">Try</button></form>
<output id="verdict" for="text"></output>
</div>
<main id="content">${content}</main>
<p id="announcement" class="unseen" role="status"></p>
<script nonce="${shell.nonce}" src="${shell.scriptUri}"></script>
</body>
</html>
`.toString();
}

export function waitingHtml(): Markup {
  return html`<p class="note">Place the cursor in a file to see what may come there.</p>`;
}

export function failureHtml(message: string): Markup {
  return html`<p class="note" role="alert">There is no explanation: ${message}</p>`;
}

export function explanationHtml(explanation: Explanation, place: Place): Markup {
  return html`${headerHtml(explanation, place)}
${whereHtml(explanation, place)}
${expectedHtml(explanation)}
${candidatesHtml(explanation.candidates)}
${shortestHtml(explanation.shortest)}
${grammarHtml(explanation.grammar)}`;
}

/** One sentence for screen readers when the page has changed. */
export function announcement(explanation: Explanation, place: Place): string {
  const { line, character } = explanation.position;
  const innermost = explanation.openLeft[0];
  const inside = innermost === undefined ? "" : `, inside ${spoken(innermost.name)}`;
  const likely = explanation.likely === null ? "" : `, ${likelyWords(explanation.likely)} most likely`;
  return `${place.fileName}, line ${line + 1}, column ${character + 1}${inside}: ${counted(explanation.expected.length, "thing")} may come${likely}.`;
}

function likelyWords(likely: string): string {
  const { keywords, symbols, lexemes } = grouped([likely]);
  return keywords[0] ?? symbols[0] ?? lexemes[0]?.words ?? likely;
}

function headerHtml(explanation: Explanation, place: Place): Markup {
  const { line, character } = explanation.position;
  const facts: Part[] = [
    fact("Language", languageName(explanation.language)),
    fact(
      "Guarantee",
      html`<strong class="guarantee ${explanation.guarantee}">${explanation.guarantee}</strong>: ${GUARANTEE_WORDS[explanation.guarantee]}`,
    ),
  ];
  if (explanation.inside !== null) {
    facts.push(fact("The cursor is", `inside a ${explanation.inside}`));
  }
  if (explanation.ignored.length > 0) {
    const lines = explanation.ignored.map((part) => html`<li>${lineButton(part.line, ignoredWords(part))}</li>`);
    facts.push(fact("Left out", html`<ul class="inline">${lines}</ul>`));
  }
  if (explanation.diagnostics.length > 0) {
    facts.push(fact("Found", html`<ul>${explanation.diagnostics.map((message) => html`<li>${message}</li>`)}</ul>`));
  }
  return html`<header>
<h1>${place.fileName}:${line + 1}:${character + 1}</h1>
<dl>${facts}</dl>
</header>`;
}

function fact(name: string, value: Part): Markup {
  return html`<div><dt>${name}</dt><dd>${value}</dd></div>`;
}

function ignoredWords({ line, count }: { line: number; count: number }): string {
  return count > 1 ? `lines ${line + 1} to ${line + count}` : `line ${line + 1}`;
}

// --- what may come ---------------------------------------------------------------------------------------------------

function expectedHtml({ expected, likely, inside }: Explanation): Markup {
  const { keywords, symbols, lexemes } = grouped(expected);
  const body: Part =
    expected.length === 0
      ? html`<p class="note">${inside === null ? "Nothing: only the end of the file." : `Any text of the ${inside}.`}</p>`
      : [
          likelyHtml(likely),
          chips("Names, numbers and the like", lexemes.map(lexemeChip)),
          chips("Keywords", keywords.map(literalChip)),
          chips("Symbols", symbols.map(literalChip)),
        ];
  return section("expected", "What may come here", body);
}

/** The likeliest lexeme, shown before the list of all that may come. */
function likelyHtml(likely: string | null): Part {
  if (likely === null) {
    return null;
  }
  const { keywords, symbols, lexemes } = grouped([likely]);
  const chip = [...lexemes.map(lexemeChip), ...keywords.map(literalChip), ...symbols.map(literalChip)];
  return html`<h3>Most likely</h3><ul class="chips likely">${chip}</ul>`;
}

function chips(title: string, chips: readonly Markup[]): Part {
  return chips.length === 0 ? null : html`<h3>${title}</h3><ul class="chips">${chips}</ul>`;
}

function literalChip(literal: string): Markup {
  return html`<li><code>${blanksShown(literal)}</code></li>`;
}

function lexemeChip({ words, names }: Lexeme): Markup {
  return html`<li title="In the grammar: ${names.join(", ")}"><code>${words}</code></li>`;
}

// --- where you are ---------------------------------------------------------------------------------------------------

function whereHtml(explanation: Explanation, place: Place): Markup {
  const { levels, unopened } = picture(explanation, place.lineText);
  const { line, character } = explanation.position;
  const text = place.lineText(line) ?? "";
  const innermost: Part = [
    html`<div class="here"><span class="unseen">the cursor is here: </span><code>${text.slice(0, character).trimStart()}<span class="caret" aria-hidden="true"></span><span class="unseen"> (cursor) </span>${text.slice(character).trimEnd()}</code></div>`,
    unopened.length === 0 ? null : html`<ul class="unopened">${unopened.map(unopenedHtml)}</ul>`,
  ];
  const boxes = levels.reduceRight<Part>((content, level) => levelHtml(level, content), innermost);
  const note =
    levels.length === 0
      ? html`<p class="note">Nothing is open left of the cursor: this is the top of the file.</p>`
      : null;
  return section("where", "Where you are", [note, html`<div class="levels">${boxes}</div>`]);
}

function levelHtml(level: Level, content: Part): Markup {
  const names = level.names.map(spoken).join(" › ");
  return html`<div class="level${level.brackets.length > 0 ? " bracket" : ""}" role="group" aria-label="${names}, line ${level.line + 1}">
<div class="edge">${lineButton(level.line)} <code>${blanksShown(level.text)}</code> <span class="name">${names}</span></div>
${content}
${level.brackets.map(bracketHtml)}
</div>`;
}

function bracketHtml({ opener, closer }: OpenBracket): Markup {
  return closer === undefined
    ? html`<div class="edge missing">the text has to close <code>${opener}</code></div>`
    : html`<div class="edge">${lineButton(closer.line)} <code>${blanksShown(closer.text)}</code> <span class="name">closes <code>${opener}</code></span></div>`;
}

function unopenedHtml(closer: Closer): Markup {
  return html`<li>${lineButton(closer.line)} <code>${blanksShown(closer.text)}</code> closes what the text has to open</li>`;
}

function lineButton(line: number, words = `line ${line + 1}`): Markup {
  return html`<button type="button" class="line" data-line="${line}">${words}</button>`;
}

// --- what the model wanted -------------------------------------------------------------------------------------------

function candidatesHtml(candidates: readonly Candidate[]): Markup {
  const body =
    candidates.length === 0
      ? html`<p class="note">Unknown: no model is loaded.</p>`
      : html`<table>
<thead><tr><th scope="col">Text</th><th scope="col">Probability</th><th scope="col">Grammar</th></tr></thead>
<tbody>${candidates.map(candidateHtml)}</tbody>
</table>`;
  return section("candidates", "Next tokens of the model", body);
}

function candidateHtml(candidate: Candidate): Markup {
  // Widths as attributes of a drawing, because the page's policy forbids style attributes.
  const width = (candidate.probability * 100).toFixed(1);
  const verdict = candidate.allowed
    ? html`<span class="allowed">allowed</span>`
    : html`<span class="refused">refused</span>${candidate.reason === null ? null : html`<span class="reason">: ${candidate.reason}</span>`}`;
  return html`<tr class="${candidate.allowed ? "" : "refused-row"}">
<th scope="row"><code>${candidate.text === "" ? html`<i>the end</i>` : blanksShown(candidate.text)}</code></th>
<td class="probability"><svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" focusable="false"><rect class="track" width="100" height="8"/><rect class="fill" width="${width}" height="8"/></svg> ${percentage(candidate.probability)}</td>
<td>${verdict}</td>
</tr>`;
}

// --- the rest --------------------------------------------------------------------------------------------------------

function shortestHtml(shortest: string | null): Markup {
  const body =
    shortest === null
      ? html`<p class="note">None was found.</p>`
      : shortest === ""
        ? html`<p>Nothing is needed: both sides already fit together.</p>`
        : html`<pre>${blanksShown(shortest)}</pre>`;
  return section("shortest", "Shortest text that connects both sides", body);
}

function grammarHtml(grammar: string): Markup {
  if (grammar === "") {
    return html``;
  }
  const isCut = grammar.length > MOST_GRAMMAR_CHARACTERS;
  return html`<details id="grammar">
<summary>Grammar of all texts that fit here</summary>
<p>${isCut ? html`The first ${counted(MOST_GRAMMAR_CHARACTERS, "character")} of ${counted(grammar.length, "character")}. ` : null}<button type="button" class="copy">Copy all of it</button></p>
<pre tabindex="0" aria-label="Grammar of all texts that fit here">${grammar.slice(0, MOST_GRAMMAR_CHARACTERS)}</pre>
</details>`;
}

function section(id: string, title: string, body: Part): Markup {
  return html`<section aria-labelledby="${id}-title">
<h2 id="${id}-title">${title}</h2>
${body}
</section>`;
}

/** The verdict on a text that the user has tried. */
export function verdictHtml(text: string, verdict: Verdict | null): Markup {
  if (verdict === null) {
    return html`<span class="refused">The server gave no verdict.</span>`;
  }
  if (verdict.viable) {
    return verdict.complete
      ? html`<span class="allowed">It fits: the file parses with it.</span>`
      : html`<span class="allowed">It fits so far,</span> and needs more after it.`;
  }
  if (verdict.rejectedAt === null) {
    return html`<span class="refused">It does not fit.</span>`;
  }
  // The server counts characters, not UTF-16 units.
  const characters = [...text];
  const at = Math.max(0, Math.min(characters.length, Math.floor(verdict.rejectedAt)));
  return html`<span class="refused">It does not fit</span> from here on: <code>${blanksShown(characters.slice(0, at).join(""))}<mark>${blanksShown(characters.slice(at).join("") || " ")}</mark></code>`;
}

const BLANKS: Readonly<Record<string, readonly [sign: string, name: string]>> = {
  "\n": ["⏎", "line break"],
  "\r": ["␍", "carriage return"],
  "\t": ["⇥", "tab"],
};

/** Code with visible line breaks, tabs and outer blanks. Line breaks still break the line. */
export function blanksShown(code: string): Markup[] {
  const parts = code.split(/([\n\r\t]|^ +| +$)/).filter((part) => part !== "");
  return parts.map((part) => {
    const [sign, name] =
      BLANKS[part] ??
      (/^ +$/.test(part) && isOuter(part, parts) ? ["·".repeat(part.length), counted(part.length, "blank")] : []);
    if (sign === undefined || name === undefined) {
      return html`${part}`;
    }
    return html`<span class="blank" role="img" aria-label="${name}">${sign}</span>${part === "\n" ? "\n" : null}`;
  });
}

function isOuter(part: string, parts: readonly string[]): boolean {
  return parts[0] === part || parts.at(-1) === part;
}

/** The page's title in its tab. */
export function panelTitle(place: Place | undefined): string {
  return place === undefined ? "Explanation" : `Explanation: ${place.fileName}`;
}

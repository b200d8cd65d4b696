"use strict";
// The list of samples: unpacked once, filtered and drawn here, nothing fetched. Every text is set as text, never as HTML.
(async () => {
  const ROW = 54; // of the list, in pixels, as in the style sheet
  const CONTEXT_LINES = 12;
  const byId = (name) => document.getElementById(name);
  const make = (tag, className, text) => {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  };

  const status = byId("status");
  let data;
  try {
    const packed = Uint8Array.from(atob(byId("data").textContent.trim()), (character) => character.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    data = JSON.parse(await new Response(stream).text());
  } catch (error) {
    status.textContent = "The samples cannot be shown: this browser cannot unpack them (" + error.message + ").";
    return;
  }

  // Positions in the arrays that page.py writes.
  const [ID, SET, KIND, LEFT, RIGHT, REFERENCE, HOLE, BEFORE, AFTER, PLACE, RESULTS] = data.fields.keys();
  const [TEXT, PARSES, EXACT, STOP, WON, TOKENS, TOTAL, SIMILAR, GUARANTEE, PASSED, ERROR, CUT] = data.result_fields.keys();
  const variants = data.variants;
  const ID_CHARACTERS = variants.length > 3 ? 24 : 30; // shown in the list

  const verdict = (result) => {
    if (!result) return "absent";
    if (result[ERROR] !== null) return "error";
    if (result[TEXT] === null) return "none";
    if (!result[PARSES]) return "fails";
    return result[EXACT] ? "exact" : "parses";
  };
  const GLYPHS = {
    exact: ["=", "exact", "exact match"], parses: ["✓", "yes", "parses"], fails: ["✗", "no", "does not parse"],
    none: ["∅", "no", "no text"], error: ["!", "no", "not measured"], absent: ["·", "absent", "no record"],
  };
  const succeeds = (result) => Boolean(result) && ["exact", "parses"].includes(verdict(result));
  const OUTCOMES = {
    failed: (result) => Boolean(result) && !succeeds(result),
    parses: succeeds,
    exact: (result) => verdict(result) === "exact",
    different: (result) => verdict(result) === "parses",
    notext: (result) => verdict(result) === "none",
    error: (result) => verdict(result) === "error",
    landed: (result) => Boolean(result) && data.won[result[WON]] === "landed",
    lost: (result, sample) => OUTCOMES.failed(result) && sample[RESULTS].some(succeeds),
    won: (result, sample) => succeeds(result) && sample[RESULTS].some((other) => OUTCOMES.failed(other)),
    test: (result) => Boolean(result) && result[PASSED] === false,
  };

  // What a reader could not see, or what would reorder the line, is spelled out.
  const ODD = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
  const spelled = (character) => "⟨U+" + character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0") + "⟩";
  const put = (element, text) => {
    let end = 0;
    for (const found of text.matchAll(ODD)) {
      element.append(text.slice(end, found.index), make("span", "odd", spelled(found[0])));
      end = found.index + 1;
    }
    element.append(text.slice(end));
    return element;
  };
  const plain = (text) => text.replace(ODD, spelled);

  // --- filters ------------------------------------------------------------------------------------------------------

  const controls = { set: byId("set"), kind: byId("kind"), mode: byId("mode"), outcome: byId("outcome"), q: byId("q") };
  const addOptions = (select, names) => {
    for (const name of names) select.append(Object.assign(make("option", "", name), { value: name }));
  };
  addOptions(controls.set, data.sets);
  addOptions(controls.kind, data.kinds);
  addOptions(controls.mode, variants);
  const wrap = byId("wrap");
  const samples = data.samples;
  let shown = [];
  let current = -1; // place in `shown`
  let wide = false; // all context

  const matches = (sample) => {
    if (controls.set.value && data.sets[sample[SET]] !== controls.set.value) return false;
    if (controls.kind.value && data.kinds[sample[KIND]] !== controls.kind.value) return false;
    const outcome = OUTCOMES[controls.outcome.value];
    const chosen = variants.indexOf(controls.mode.value);
    const results = chosen < 0 ? sample[RESULTS] : [sample[RESULTS][chosen]];
    if (outcome ? !results.some((result) => outcome(result, sample)) : chosen >= 0 && !results[0]) return false;
    const wanted = controls.q.value.toLowerCase();
    if (!wanted) return true;
    const texts = [sample[ID], sample[PLACE], sample[REFERENCE], ...results.flatMap((result) => (result ? [result[TEXT], result[ERROR]] : []))];
    return texts.some((text) => text !== null && text.toLowerCase().includes(wanted));
  };

  const readHash = () => {
    const wanted = new URLSearchParams(location.hash.slice(1));
    for (const [name, control] of Object.entries(controls)) {
      control.value = wanted.get(name) ?? "";
      if (control.value === "" && control.options) control.selectedIndex = 0;
    }
    return wanted.get("sample");
  };
  const writeHash = () => {
    const parts = new URLSearchParams();
    for (const [name, control] of Object.entries(controls)) if (control.value) parts.set(name, control.value);
    if (current > 0) parts.set("sample", shown[current][ID]);
    if (!parts.size && !location.hash.includes("=")) return;
    const hash = "#" + (parts.toString() || "samples");
    try {
      history.replaceState(null, "", hash);
    } catch {
      // Some browsers forbid this for files; then the address only stays as it was.
    }
  };

  const filter = (id) => {
    shown = samples.filter(matches);
    const left = data.left_out ? ` (${data.left_out.toLocaleString("en")} more are not in this page)` : "";
    status.textContent = `${shown.length.toLocaleString("en")} of ${samples.length.toLocaleString("en")} samples${left}`;
    list.scrollTop = 0;
    const place = id ? shown.findIndex((sample) => sample[ID] === id) : 0;
    current = -1;
    rows.clear();
    space.replaceChildren();
    space.style.height = shown.length * ROW + "px";
    select(shown.length ? Math.max(place, 0) : -1);
  };

  // --- list ---------------------------------------------------------------------------------------------------------

  const list = byId("list");
  const space = list.appendChild(make("div", "space"));
  space.setAttribute("role", "presentation");
  const rows = new Map(); // those drawn, by their place

  const markOf = (result, name) => {
    const [glyph, className, words] = GLYPHS[verdict(result)];
    const mark = make("span", "mark " + className, glyph);
    mark.title = name + ": " + words;
    mark.setAttribute("role", "img");
    mark.setAttribute("aria-label", mark.title);
    return mark;
  };
  const rowOf = (place) => {
    const sample = shown[place];
    const row = make("div", "option");
    row.id = "sample-" + place;
    row.setAttribute("role", "option");
    row.setAttribute("aria-setsize", shown.length);
    row.setAttribute("aria-posinset", place + 1);
    row.setAttribute("aria-selected", place === current);
    row.style.top = place * ROW + "px";
    const marks = row.appendChild(make("div", "marks"));
    sample[RESULTS].forEach((result, index) => marks.append(markOf(result, variants[index])));
    const id = plain(sample[ID]); // the ends of identifiers differ, their beginnings seldom do
    marks.append(make("span", "id", id.length > ID_CHARACTERS ? "…" + id.slice(1 - ID_CHARACTERS) : id));
    row.append(make("div", "peek", plain(sample[REFERENCE].trim().slice(0, 120).replace(/\s+/g, " ")) || "(empty)"));
    row.addEventListener("click", () => select(place));
    return row;
  };
  const draw = () => {
    const first = Math.max(0, Math.floor(list.scrollTop / ROW) - 8);
    const last = Math.min(shown.length, Math.ceil((list.scrollTop + list.clientHeight) / ROW) + 8);
    for (const [place, row] of rows) {
      if (place < first || place >= last) {
        row.remove();
        rows.delete(place);
      }
    }
    for (let place = first; place < last; place++) {
      if (!rows.has(place)) rows.set(place, space.appendChild(rowOf(place)));
    }
  };
  list.addEventListener("scroll", draw, { passive: true });
  window.addEventListener("resize", draw);

  const select = (place) => {
    rows.get(current)?.setAttribute("aria-selected", "false");
    current = place;
    if (place >= 0) {
      const top = place * ROW;
      if (top < list.scrollTop) list.scrollTop = top;
      if (top + ROW > list.scrollTop + list.clientHeight) list.scrollTop = top + ROW - list.clientHeight;
    }
    draw();
    rows.get(place)?.setAttribute("aria-selected", "true");
    if (place >= 0) list.setAttribute("aria-activedescendant", "sample-" + place);
    else list.removeAttribute("aria-activedescendant");
    show();
    writeHash();
  };

  // --- one sample ---------------------------------------------------------------------------------------------------

  const detail = byId("detail");
  const lastLines = (text) => (wide ? text : text.split("\n").slice(-CONTEXT_LINES - 1).join("\n"));
  const firstLines = (text) => (wide ? text : text.split("\n").slice(0, CONTEXT_LINES + 1).join("\n"));

  // The text, with what lies between the beginning and the end that it shares with the reference underlined.
  const markOfText = (text, reference, className) => {
    const mark = make("mark", className);
    if (text === "") return mark.appendChild(make("span", "odd", "⟨empty⟩")).parentNode;
    if (reference === null || text === reference) return put(mark, text);
    const most = Math.min(text.length, reference.length);
    let start = 0;
    while (start < most && text[start] === reference[start]) start++;
    let end = 0;
    while (end < most - start && text[text.length - 1 - end] === reference[reference.length - 1 - end]) end++;
    put(mark, text.slice(0, start));
    if (start < text.length - end) put(mark.appendChild(make("span", "other")), text.slice(start, text.length - end));
    return put(mark, text.slice(text.length - end));
  };
  const sideOf = (sample, name, text, reference, className) => {
    const side = make("section", "side");
    const head = side.appendChild(make("div", "head"));
    head.append(make("strong", "", name));
    if (text === null) return side;
    const code = side.appendChild(make("pre"));
    code.tabIndex = 0;
    code.setAttribute("aria-label", name + ": the program around the hole");
    put(code.appendChild(make("span", "context")), lastLines(sample[LEFT]));
    code.append(markOfText(text, reference, className));
    put(code.appendChild(make("span", "context")), firstLines(sample[RIGHT]));
    return side;
  };
  const factsOf = (result) => {
    const facts = [GLYPHS[verdict(result)][2]];
    const add = (text) => facts.push(text);
    if (result[ERROR] !== null) return facts;
    if (result[WON] !== null) add(data.won[result[WON]].replace("_", " "));
    if (result[STOP] !== null && data.stops[result[STOP]] !== data.won[result[WON]]) add("stopped: " + data.stops[result[STOP]].replace("_", " "));
    if (result[TOKENS] !== null) add(result[TOKENS] + " tokens");
    if (result[TOTAL] !== null) add(result[TOTAL] + " ms");
    if (result[SIMILAR] !== null) add("similarity " + result[SIMILAR]);
    if (result[GUARANTEE] !== null) add("guarantee " + data.guarantees[result[GUARANTEE]]);
    if (result[PASSED] !== null) add(result[PASSED] ? "test passed" : "test not passed");
    if (result[CUT]) add(`cut here, ${result[CUT].toLocaleString("en")} characters more`);
    return facts;
  };
  const show = () => {
    detail.replaceChildren();
    if (current < 0) {
      detail.append(make("p", "lead", "No sample matches."));
      return;
    }
    const sample = shown[current];
    const words = `${data.sets[sample[SET]]}, ${data.kinds[sample[KIND]]}; hole ${sample[HOLE]} characters, left ${sample[BEFORE]}, right ${sample[AFTER]}`;
    detail.append(make("h3", "", plain(sample[ID])));
    if (sample[PLACE]) detail.append(make("p", "place", plain(sample[PLACE])));
    detail.append(make("p", "note", words));
    detail.append(sideOf(sample, "reference", sample[REFERENCE], null, "truth"));
    const chosen = variants.indexOf(controls.mode.value);
    const order = [...variants.keys()].reverse(); // the last is what the report is about
    if (chosen >= 0) order.unshift(...order.splice(order.indexOf(chosen), 1));
    for (const index of order) {
      const result = sample[RESULTS][index];
      const text = result ? result[TEXT] : null;
      const side = sideOf(sample, variants[index], text, sample[REFERENCE], succeeds(result) ? "fits" : "fails");
      side.dataset.mode = variants[index];
      if (index === chosen) side.classList.add("chosen");
      const head = side.firstChild;
      head.prepend(markOf(result, variants[index]));
      head.append(make("span", "facts-line", result ? factsOf(result).join(" · ") : "no record"));
      if (result && result[ERROR] !== null) put(side.appendChild(make("p", "missing")), result[ERROR]);
      else if (text === null) side.append(make("p", "missing", result ? "No text was offered." : "There is no record of this mode."));
      detail.append(side);
    }
  };

  // --- keys ---------------------------------------------------------------------------------------------------------

  const step = (by) => shown.length && select(Math.min(Math.max(current + by, 0), shown.length - 1));
  const toggleWrap = () => document.body.classList.toggle("wrapped", wrap.checked);
  const context = byId("context");
  const toggleContext = () => {
    wide = context.checked;
    show();
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, select, textarea")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const inList = event.target === list;
    const actions = {
      j: () => step(1), k: () => step(-1), n: () => step(1), p: () => step(-1),
      "/": () => controls.q.focus(),
      w: () => { wrap.checked = !wrap.checked; toggleWrap(); },
      c: () => { context.checked = !context.checked; toggleContext(); },
      ...(inList && {
        ArrowDown: () => step(1), ArrowUp: () => step(-1), PageDown: () => step(10), PageUp: () => step(-10),
        Home: () => select(shown.length ? 0 : -1), End: () => select(shown.length - 1),
      }),
    };
    if (!Object.hasOwn(actions, event.key)) return;
    event.preventDefault();
    actions[event.key]();
  });

  let waiting = 0;
  controls.q.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(filter, 150);
  });
  for (const name of ["set", "kind", "mode", "outcome"]) controls[name].addEventListener("change", () => filter());
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("clear").addEventListener("click", () => {
    for (const control of Object.values(controls)) control.value = "";
    filter();
  });
  wrap.addEventListener("change", toggleWrap);
  context.addEventListener("change", toggleContext);
  window.addEventListener("hashchange", () => {
    if (location.hash.includes("=")) filter(readHash());
  });
  toggleWrap();
  filter(location.hash.includes("=") ? readHash() : null);
  if (location.hash.includes("=")) byId("samples").scrollIntoView({ behavior: "instant" });
  document.documentElement.dataset.ready = "yes";
})();

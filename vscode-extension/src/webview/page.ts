// The script of the explanation's page. It keeps unfolded parts, focus and scrolling while the content changes.
import type { FromPage, ToPage } from "../explain/messages";

declare function acquireVsCodeApi(): { postMessage(message: FromPage): void };

const editor = acquireVsCodeApi();

function element<T extends HTMLElement>(id: string, kind: new () => T): T {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) {
    throw new Error(`the page has no ${id}`);
  }
  return found;
}

const content = element("content", HTMLElement);
const pin = element("pin", HTMLButtonElement);
const form = element("try", HTMLFormElement);
const input = element("text", HTMLInputElement);
const verdict = element("verdict", HTMLOutputElement);
const announcement = element("announcement", HTMLElement);

function replaceContent(html: string): void {
  const unfolded = new Set([...content.querySelectorAll("details[open]")].map((details) => details.id));
  const focusable = "button, summary, pre";
  const focused = [...content.querySelectorAll(focusable)].indexOf(document.activeElement ?? content);
  // Safe: the extension has escaped the user's code, and the page's policy forbids inline scripts.
  content.innerHTML = html;
  for (const details of content.querySelectorAll("details")) {
    details.open = unfolded.has(details.id);
  }
  const next = focused < 0 ? undefined : content.querySelectorAll(focusable)[focused];
  if (next instanceof HTMLElement) {
    next.focus({ preventScroll: true });
  }
}

function showPinned(pinned: boolean): void {
  pin.setAttribute("aria-pressed", String(pinned));
  pin.textContent = pinned ? "Pinned" : "Pin";
}

window.addEventListener("message", (event: MessageEvent<ToPage>) => {
  const message = event.data;
  switch (message.type) {
    case "content":
      replaceContent(message.html);
      verdict.textContent = "";
      // Announce only in the page: in the editor, the screen reader speaks at each cursor move already.
      announcement.textContent = document.hasFocus() ? message.announcement : "";
      break;
    case "verdict":
      verdict.innerHTML = message.html;
      break;
    case "pinned":
      showPinned(message.pinned);
      break;
  }
});

content.addEventListener("click", (event) => {
  const button = event.target instanceof Element ? event.target.closest("button") : null;
  if (button?.classList.contains("line")) {
    editor.postMessage({ type: "reveal", line: Number(button.dataset["line"]) });
  } else if (button?.classList.contains("copy")) {
    editor.postMessage({ type: "copyGrammar" });
  }
});

pin.addEventListener("click", () => {
  const pinned = pin.getAttribute("aria-pressed") !== "true";
  showPinned(pinned);
  editor.postMessage({ type: "pin", pinned });
});

form.addEventListener("submit", (event) => {
  event.preventDefault();
  editor.postMessage({ type: "try", text: input.value });
});

editor.postMessage({ type: "ready" });

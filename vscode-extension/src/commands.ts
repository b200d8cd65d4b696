// Commands of the extension, as in package.json (a test compares them).
export const COMMANDS = [
  "fim-server.trigger",
  "fim-server.explain",
  "fim-server.toggle",
  "fim-server.snooze",
  "fim-server.endSnooze",
  "fim-server.toggleLanguage",
  "fim-server.chooseLanguage",
  "fim-server.toggleWorkspace",
  "fim-server.acceptLine",
  "fim-server.dismiss",
  "fim-server.showNextEdit",
  "fim-server.acceptNextEdit",
  "fim-server.dismissNextEdit",
  "fim-server.forgetDecisions",
  "fim-server.showStatistics",
  "fim-server.tryExample",
  "fim-server.restart",
  "fim-server.showLogs",
  "fim-server.menu",
  "fim-server.install",
  "fim-server.getBetterModel",
  "fim-server.chooseModel",
  "fim-server.removeInstalledModel",
] as const;

/** Argument of `fim-server.dismiss` once the ghost text is hidden, as Escape's binding in package.json passes it. */
export const HIDDEN = "hidden";

export type CommandId = (typeof COMMANDS)[number];

/** One handler for each command. */
export type Handlers = Readonly<Record<CommandId, (...args: readonly unknown[]) => unknown>>;

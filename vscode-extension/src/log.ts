// The server's standard error: levels of its lines for the log, and the last lines for an error message.

export type Level = "error" | "warn" | "info" | "debug";

/** Returns the level that a log line of a Python program names; without one, `info`. */
export function levelOf(line: string): Level {
  const level = /\b(CRITICAL|ERROR|WARNING|WARN|INFO|DEBUG)\b/i.exec(line.slice(0, 80))?.[1]?.toUpperCase();
  switch (level) {
    case "CRITICAL":
    case "ERROR":
      return "error";
    case "WARNING":
    case "WARN":
      return "warn";
    case "DEBUG":
      return "debug";
    case "INFO":
      return "info";
    default:
      return /^Traceback \(most recent call last\)|^\w*(Error|Exception)\b/.test(line) ? "error" : "info";
  }
}

/** The last lines of the output. */
export class Tail {
  private lines: string[] = [];

  constructor(private readonly length = 20) {}

  push(line: string): void {
    this.lines.push(line);
    if (this.lines.length > this.length) {
      this.lines.shift();
    }
  }

  /** Returns the last non-empty line. In a Python traceback, this is the error. */
  lastWords(): string | undefined {
    return this.lines.findLast((line) => line.trim() !== "")?.trim();
  }
}

/** Returns the user's message when the server did not start. */
export function startFailure(command: string, error: unknown, lastWords?: string): string {
  const code = typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
  const detail = error instanceof Error ? error.message : String(error);
  if (code === "ENOENT" || /\bENOENT\b/.test(detail)) {
    return `fim-server was not found at "${command}". Install it, or set fim-server.path.`;
  }
  if (code === "EACCES" || /\bEACCES\b/.test(detail)) {
    return `"${command}" may not be executed. Set fim-server.path to the program fim-server.`;
  }
  return `fim-server did not start: ${(lastWords ?? detail).replace(/^fim-server: (error: )?/, "")}`;
}

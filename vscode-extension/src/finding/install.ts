// The command that installs the server, for the terminal in which the user reads it before running it.

/** The one place that names the package. It is not published yet: until it is, pip says so. */
export const PACKAGE = "fim-server";

/** @param shell the program of the terminal, which says how a path with spaces is written */
export function installCommand(interpreter: string | undefined, shell: string): string {
  return `${quoted(interpreter ?? "python", shell)} -m pip install ${PACKAGE}`;
}

function quoted(program: string, shell: string): string {
  if (/^[\w./\\:-]+$/.test(program) && !(program.includes("\\") && isPosix(shell))) {
    return program;
  }
  const name = nameOf(shell);
  if (name === "powershell" || name === "pwsh") {
    return `& '${program.replaceAll("'", "''")}'`;
  }
  if (name === "cmd") {
    return `"${program}"`;
  }
  return `'${program.replaceAll("'", "'\\''")}'`;
}

function isPosix(shell: string): boolean {
  return !["powershell", "pwsh", "cmd"].includes(nameOf(shell));
}

function nameOf(shell: string): string {
  return (shell.split(/[/\\]/).at(-1) ?? "").replace(/\.exe$/i, "").toLowerCase();
}

// The command that installs the server, typed into a terminal for the user to run.

/** Name of the package. */
export const PACKAGE = "fim-server";

/** @param shell the terminal's shell, which decides how to quote a path */
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

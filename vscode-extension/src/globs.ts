// Globs of files in the setting `languages`, with the syntax of `.gitignore`. The server decides by the same rules.

/** A language's name in the setting; other keys are globs. */
const NAME = /^[\p{L}\p{N}_ +#-]*$/u;

export function isGlob(key: string): boolean {
  return !NAME.test(key);
}

/** Returns whether a glob names a file, or a folder above it, in any case. `file`: below the workspace's folder. */
export function isNamedBy(file: string, glob: string): boolean {
  const parts = file.split("/").filter((part) => part !== "");
  const pattern = patternOf(glob);
  const onlyFolders = glob.endsWith("/");
  return parts.some((_, index) => {
    const isFile = index === parts.length - 1;
    return !(isFile && onlyFolders) && pattern.test(parts.slice(0, index + 1).join("/"));
  });
}

function patternOf(glob: string): RegExp {
  const bare = glob.replace(/\/$/, "");
  const anywhere = bare.includes("/") ? "" : "(?:.*/)?";
  const source = bare
    .replace(/^\//, "")
    .split(/(\/\*\*\/|^\*\*\/|\/\*\*$|\*+|\?|\[[!^]?\]?[^\]]*\]|\\.)/)
    .map((piece) => {
      switch (piece) {
        case "/**/":
          return "/(?:.*/)?";
        case "**/":
          return "(?:.*/)?";
        case "/**":
          return "/.*";
        case "?":
          return "[^/]";
      }
      if (/^\*+$/.test(piece)) {
        return "[^/]*";
      }
      if (/^\[.+\]$/.test(piece)) {
        return piece.replace(/^\[!/, "[^").replaceAll("\\", "\\\\");
      }
      return escaped(piece.replace(/^\\(.)$/, "$1"));
    })
    .join("");
  try {
    return new RegExp(`^${anywhere}${source}$`, "isu");
  } catch {
    return /^\b$/; // no glob: the server says so
  }
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
}

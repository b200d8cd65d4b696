// Bundles the extension, its language client and the script of its page into a file each. With --tests, also bundles
// each unit test.
import { rmSync } from "node:fs";
import { build } from "esbuild";

const production = process.argv.includes("--production");
const tests = process.argv.includes("--tests");
const common = {
  bundle: true,
  logLevel: "warning",
  minify: production,
  sourcemap: !production && !tests,
};
const node = { ...common, format: "cjs", platform: "node", target: "node20" };

rmSync(tests ? "out/test" : "out", { recursive: true, force: true });
// The client is most of the code, and is not even parsed before a file needs a server. Its library has a `./client` too.
await build({
  ...node,
  entryPoints: ["src/extension.ts"],
  outfile: "out/extension.js",
  external: ["vscode", "./client"],
  supported: { "dynamic-import": false },
});
await build({ ...node, entryPoints: ["src/client.ts"], outfile: "out/client.js", external: ["vscode"] });
await build({
  ...common,
  entryPoints: ["src/webview/page.ts"],
  outfile: "out/page.js",
  format: "iife",
  platform: "browser",
  target: "es2022",
});
if (tests) {
  await build({ ...node, entryPoints: ["test/*.test.ts"], outdir: "out/test" });
}

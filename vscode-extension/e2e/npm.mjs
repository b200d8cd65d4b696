// An npm project, and a page with a script.

/** Files of an npm project. */
export const NPM = {
  "package.json": `{ "name": "queue", "type": "module", "dependencies": { "react": "^19.0.0" } }\n`,
  "tsconfig.json": `{ "compilerOptions": { "jsx": "react-jsx", "strict": true } }\n`,
};

/** Code of the npm project, by the editor's name of its language. */
export const SCRIPTS = {
  javascript: {
    name: "queue.js",
    typed: "this.",
    text: `export class Queue {
  constructor() {
    this.items = [];
  }

  push(item) {
    ‸
  }
}
`,
  },
  typescript: {
    name: "queue.ts",
    typed: "this.",
    text: `export class Queue<T> {
  private readonly items: T[] = [];

  push(item: T): void {
    ‸
  }
}
`,
  },
  typescriptreact: {
    name: "list.tsx",
    typed: "items.",
    text: `export function List({ items }: { items: readonly string[] }) {
  return (
    <ul title="it's a list">
      {‸}
    </ul>
  );
}
`,
  },
  html: {
    name: "page.html",
    typed: "items.",
    text: `<!doctype html>
<p title="<script>">It's a page</p>
<script type="module">
const items = [];
function push(item) {
  ‸
}
</script>
<p>{</p>
`,
  },
};

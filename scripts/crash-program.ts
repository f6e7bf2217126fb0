// Bundles a server that can be told to die at a failpoint, and prints the folder of the files. A failpoint is a comment on a
// line of its own, `// failpoint: NAME`: it costs the product nothing, and is code in this bundle alone. An argument, JSON, names
// changes of the sources: faults that are planted.
import { readFile } from "node:fs/promises";
import path from "node:path";
import type { Plugin } from "esbuild";
import { ENTRIES, THREAD } from "./bundle.ts";
import { root } from "./lib.ts";
import { makeProgram } from "./test-program.ts";

interface Change {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

const changes = JSON.parse(process.argv[2] ?? "[]") as readonly Change[];

const FAILPOINT = /^( *)\/\/ failpoint: ([a-z-]+)$/gmu;

/** CRASH_FAILPOINT is a name; CRASH_FAILPOINT_AT says at which of its times the process dies, in each thread. */
const BANNER = `globalThis.idmintFailpoint ??= (() => {
  const { CRASH_FAILPOINT: wanted, CRASH_FAILPOINT_AT: at = "1", CRASH_REPORT: report } = process.env;
  let times = 0;
  return (name) => {
    if (name !== wanted || ++times !== Number(at)) return;
    if (report !== undefined) process.getBuiltinModule("node:fs").appendFileSync(report, \`killed failpoint \${at} \${name}\\n\`);
    for (;;) process.kill(process.pid, "SIGKILL");
  };
})();`;

const failpoints: Plugin = {
  name: "idmint-failpoints",
  setup(build) {
    build.onLoad(
      { filter: /\/packages\/(?:cli|core|server)\/src\/.*\.ts$/ },
      async ({ path: file }) => {
        const text = changed(path.relative(root, file), await readFile(file, "utf8"));
        const contents = text.replaceAll(FAILPOINT, '$1globalThis.idmintFailpoint("$2");');
        return { contents, loader: "ts" };
      },
    );
  },
};

function changed(file: string, text: string): string {
  return changes.reduce((now, { file: its, from, to }) => {
    if (its !== file) return now;
    if (now.split(from).length !== 2) throw new Error(`${file} has not once: ${from}`);
    return now.replace(from, to);
  }, text);
}

const folder = await makeProgram([ENTRIES, [THREAD]], {
  plugins: [failpoints],
  banner: { js: BANNER },
});
process.stdout.write(folder);

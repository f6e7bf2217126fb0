import type { Mutant } from "./mutant.ts";

const load = "packages/server/src/config/load.ts";
const config = ["packages/server/test/config/config.test.ts"];
const confirm = "packages/cli/src/commands/confirm.ts";
const confirms = ["packages/cli/test/confirm.test.ts"];
const onStores = ["packages/cli/test/confirm.e2e.test.ts"];

const candidates = "packages/cli/src/commands/completion/candidates.ts";
const completion = ["packages/cli/test/completion.test.ts"];

const pacer = "packages/cli/src/commands/bench/pacer-state.ts";
const tally = "packages/cli/src/commands/bench/tally.ts";
const benchModel = ["packages/cli/test/bench.model.test.ts"];
const bench = ["packages/cli/test/bench.test.ts"];

/** Faults of the command line and of the configuration. */
export const cliMutants: readonly Mutant[] = [
  {
    name: "cli: completion waits as long as the line says",
    file: "packages/cli/src/commands/completion/completion.ts",
    find: `const timeoutMs = Math.min(settings.timeoutMs, LONGEST_ASK_MS);`,
    replace: `const { timeoutMs } = settings;`,
    tests: completion,
  },
  {
    name: "cli: completion takes the value of a flag for a command",
    file: candidates,
    find: `      if (takes && value.length === 0) pending = option;
      else`,
    replace: `     `,
    tests: completion,
  },
  {
    name: "cli: completion offers names that are taken for a tag to be made",
    file: candidates,
    find: `  if (NEW_NAMES.has(whole)) return undefined;
`,
    replace: ``,
    tests: completion,
  },
  {
    name: "cli: a benchmark counts a call from when it was sent",
    file: pacer,
    find: `    return due;
  }`,
    replace: `    return nowMs;
  }`,
    tests: benchModel,
  },
  {
    name: "cli: a benchmark forgets the calls that it never sent",
    file: pacer,
    find: `      if (due >= end) return;
`,
    replace: `      if (due >= 0) return;
`,
    tests: benchModel,
  },
  {
    name: "cli: a benchmark takes ids of two periods for one id",
    file: tally,
    find: `let ranges = this.#ranges.get(period);`,
    replace: `let ranges = this.#ranges.values().next().value;`,
    tests: benchModel,
  },
  {
    name: "cli: a benchmark takes ids of a tag without asking",
    file: "packages/cli/src/commands/bench/bench.ts",
    find: `    await confirm(command, io, { place: serverPlace(command, io), effect });
`,
    replace: ``,
    tests: bench,
  },
  {
    name: "cli: a benchmark that found a repeat removes what could explain it",
    file: "packages/cli/src/commands/bench/bench.ts",
    find: `if (isOwn && !hasRepeats(report))`,
    replace: `if (isOwn)`,
    tests: bench,
  },
  {
    name: "cli: a watch makes a rate of two processes",
    file: "packages/cli/src/commands/watch/watch-state.ts",
    find: `this.#looks.find(({ nodeId }) => nodeId === look.nodeId)`,
    replace: `this.#looks[0]`,
    tests: ["packages/cli/test/watch.test.ts"],
  },
  {
    name: "cli: a watch ends with its server",
    file: "packages/cli/src/commands/watch/watch.ts",
    find: `if (looks === 0 || !isAway(thrown)) throw thrown;`,
    replace: `throw thrown;`,
    tests: ["packages/cli/test/watch.e2e.test.ts"],
  },
  {
    name: "cli: a chapter of the manual goes on into the next one",
    file: "packages/cli/src/text/manual.ts",
    find: `rest.slice(0, end < 0 ? undefined : end)`,
    replace: `rest`,
    tests: ["packages/cli/test/manual.test.ts"],
  },
  {
    name: "cli: the manual loses lines of a paragraph",
    file: "packages/cli/src/text/markdown.ts",
    find: `while (end < lines.length && isText(lines[end] ?? "") && !isItem(lines[end] ?? "")) end += 1;`,
    replace: `while (end < lines.length && isText(lines[end] ?? "") && !isItem(lines[end] ?? "")) lines = lines.toSpliced(end, 1);`,
    tests: ["packages/cli/test/manual.test.ts"],
  },
  {
    name: "cli: the environment wins over flags",
    file: load,
    find: `const readings = [flags, env, file];`,
    replace: `const readings = [env, flags, file];`,
    tests: config,
  },
  {
    name: "cli: the environment chooses the file although a flag does",
    file: load,
    find: `(flags.values.get("config") ?? env.values.get("config"))?.text`,
    replace: `(env.values.get("config") ?? flags.values.get("config"))?.text`,
    tests: config,
  },
  {
    name: "cli: a step that cannot be undone goes on where nobody can be asked",
    file: confirm,
    find: `  if (io.ask === undefined) {`,
    replace: `  if (io.ask === undefined) return;
  if (io.ask === undefined) {`,
    tests: confirms,
  },
  {
    name: "cli: any answer on a terminal goes on",
    file: confirm,
    find: `if (answer?.trim().toLowerCase() === "yes") return;`,
    replace: `if (answer !== undefined) return;`,
    tests: confirms,
  },
  {
    name: "cli: a terminal that is closed goes on",
    file: confirm,
    find: `if (answer?.trim().toLowerCase() === "yes") return;`,
    replace: `if (answer === undefined || answer.trim().toLowerCase() === "yes") return;`,
    tests: [...confirms, ...onStores],
  },
  {
    name: "cli: a store is accepted without a question",
    file: "packages/cli/src/commands/databases/store.ts",
    find: `    await confirm(command, io, { place: \`store: \${place}\`, effect });
`,
    replace: ``,
    tests: onStores,
  },
  {
    name: "cli: a schema that is there is migrated without a question",
    file: "packages/cli/src/commands/databases/migration.ts",
    find: `if (from === 0 || steps.length === 0) continue;`,
    replace: `if (from <= 1 || steps.length === 0) continue;`,
    tests: confirms,
  },
  {
    name: "cli: a store is shown with the parameters of its URL",
    file: "packages/server/src/store/shared/backends.ts",
    find: `const end = socket === null ? "" : `,
    replace: `const end = socket === null ? new URL(text).search : `,
    tests: config,
  },
  {
    name: "cli: a Ctrl-C that a package manager passes on ends the server at once",
    file: "packages/server/src/main/run.ts",
    find: `clock.now() - stoppingSince < SAME_SIGNAL_MS;`,
    replace: `clock.now() - stoppingSince < 0;`,
    tests: ["packages/server/test/shutdown.e2e.test.ts"],
  },
  {
    name: "cli: a server ignores the end of its script",
    file: "packages/server/src/main/run.ts",
    find: `  void script?.ended.then(stop);
`,
    replace: ``,
    tests: ["packages/server/test/shutdown.e2e.test.ts"],
  },
  {
    name: "cli: a server looks at its own parent only",
    file: "packages/server/src/main/script.ts",
    find: `return links.every(`,
    replace: `return links.slice(0, 1).every(`,
    tests: ["packages/server/test/script.test.ts"],
  },
  {
    name: "cli: a server outlives a script that ended while it started",
    file: "packages/server/src/main/script.ts",
    find: `if (table(info.parent)?.session !== info.session) return undefined;`,
    replace: `if (table(info.parent)?.session !== info.session) break;`,
    tests: ["packages/server/test/script.test.ts"],
  },
  {
    name: "cli: a server that was detached on purpose ends with its script",
    file: "packages/server/src/main/script.ts",
    find: `if (!info.isOfScript || info.session === child) break;`,
    replace: `if (!info.isOfScript) break;`,
    tests: ["packages/server/test/script.test.ts"],
  },
  {
    name: "stderr: a process that ends waits for a reader of its log",
    file: "packages/server/src/telemetry/stderr.ts",
    find: `await bounded(idle, FLUSH_MS, nodeTimers, () => undefined);`,
    replace: `await bounded(idle, 2 ** 30, nodeTimers, () => undefined);`,
    tests: ["packages/cli/test/stderr.e2e.test.ts"],
  },
  {
    name: "stderr: a command waits for a reader of its words",
    file: "packages/cli/src/cli.ts",
    find: `process.stderr.writableLength > 0`,
    replace: `process.stderr.writableLength < 0`,
    tests: ["packages/cli/test/stderr.e2e.test.ts"],
  },
  {
    name: "poll: a server that starts gives up after one slow answer",
    file: "packages/server/src/service/upstream/poll.ts",
    find: "known === undefined && storeWait !== undefined ?",
    replace: "known !== undefined && storeWait !== undefined ?",
    tests: ["packages/server/test/service/poll.test.ts"],
  },
  {
    name: "plain: bidi controls of others reach the terminal",
    file: "packages/cli/src/process/plain.ts",
    find: "[\\p{Zl}\\p{Zp}\\p{Bidi_Control}]|(?!",
    replace: "[\\p{Zl}\\p{Zp}]|(?!",
    tests: ["packages/cli/test/plain.test.ts"],
    only: "in JSON",
  },
  {
    name: "plain: a refusal may have several lines",
    file: "packages/cli/src/calls/failure.ts",
    find: "plain(headline(failure))",
    replace: "headline(failure)",
    tests: ["packages/cli/test/plain.test.ts"],
    only: "one line on a terminal",
  },
  {
    name: "plain: a cell may have several lines",
    file: "packages/cli/src/text/table.ts",
    find: "row.map(plain)",
    replace: "[...row]",
    tests: ["packages/cli/test/plain.test.ts", "packages/cli/test/text.test.ts"],
  },
  {
    name: "parts of a template are shown as flags",
    file: "packages/cli/src/calls/failure.ts",
    find: "/\\{[^{}]*\\}|",
    replace: "/",
    tests: ["packages/cli/test/failure.test.ts"],
    only: "parts of a template",
  },
];

import { createServer } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { ListNodesResponse, Node } from "@idmint/proto";
import type { Command } from "commander";
import { nextOf } from "../../../src/commands/completion/candidates.ts";
import { createProgram } from "../../../src/program.ts";
import { temporaryFolder } from "../../spawn.ts";
import { idmint, playServer, refusal, someTag } from "../../support.ts";

const silent = {
  env: {},
  out: async () => {},
  err: () => {},
  signal: new AbortController().signal,
};
const tree = await createProgram(silent);

/** What a shell is answered for words, without the first line. */
async function completed(...words: readonly string[]): Promise<readonly string[]> {
  const { exitCode, out, err } = await idmint(["completion", "bash", "--", ...words]);
  expect([exitCode, err]).toEqual([0, ""]);
  return out.trimEnd().split("\n").slice(1);
}

test.each([
  [["st"], ["start-dev", "store", "stop-issuing", "status"]],
  [["tag", "cr"], ["create"]],
  [["help", "tag", "cr"], ["create"]],
  [["help", "ki"], ["kinds"]],
  [["help", "tag", "create", ""], []],
  [["tag", "create", "orders", "--kind", "re"], ["redis-snowflake"]],
  [
    ["tag", "create", "--order="],
    ["--order=unordered", "--order=per-client", "--order=strict"],
  ],
  [
    ["tag", "create", "x", "--ceiling", "int"],
    ["int32", "int64"],
  ],
  [["tag", "import", "t"], ["tinyid"]],
  [["audit", "list", "--kind", "c"], ["change"]],
  [
    ["completion", ""],
    ["bash", "zsh", "fish"],
  ],
  // A value that looks like a flag or a command is a value.
  [["tag", "create", "--description", "--kind", "--kin"], ["--kind"]],
  [["--address", "tag", "tag", "cr"], ["create"]],
  // Flags of servers are there too, and what was typed is not offered again.
  [["serve", "--grpc-address=a:1", "--grpc-a"], []],
  [["serve", "--store-pool"], ["--store-pool-size"]],
  [["no-such-command", ""], []],
  [["id", "next", "orders", ""], []],
])("after %j comes %j", async (words, wanted) => {
  const found = await completed(...words);
  if (words[0] === "no-such-command") expect(found).toContain("tag");
  else expect(found).toEqual(wanted);
});

test("every command and flag of the help is offered, and nothing else", async () => {
  for (const [path, command] of all(tree)) {
    const help = command.createHelp();
    const names = help.visibleCommands(command).map((each) => each.name());
    if (names.length > 0) expect(offered(nextOf(tree, [...path, ""]))).toEqual(names);
    const flags = help.visibleOptions(command).map(({ long }) => long);
    expect(offered(nextOf(tree, [...path, "--"])), path.join(" ")).toEqual(flags);
  }
});

test("every value is completed or known to be free text", () => {
  const free = new Set<string>();
  const known = new Set<string>();
  for (const [path, command] of all(tree)) {
    for (const option of command.options.filter(({ required }) => required)) {
      sort(nextOf(tree, [...path, option.long ?? "", ""]), option.flags.replace(/^-., /, ""));
    }
    command.registeredArguments.forEach((argument, at) => {
      const before = command.registeredArguments.slice(0, at).map(() => "x");
      sort(nextOf(tree, [...path, ...before, ""]), `${path.join(" ")} <${argument.name()}>`);
    });
  }
  function sort(next: ReturnType<typeof nextOf>, name: string): void {
    const isFree = next.type === "words" && next.words.length === 0;
    (isFree ? free : known).add(name);
  }
  expect([...known].filter((name) => /file|kind|context|<tag>|<node>|order/.test(name))).toEqual(
    expect.arrayContaining(["--ca-file <file>", "--context <name>", "--kind <kind>"]),
  );
  // Whoever adds one of these decides here that it is not completed.
  expect(
    [...free].filter((name) => /<(?:tag|node|file|kind|order|policy|context)>/.test(name)),
  ).toEqual([]);
});

function offered(next: ReturnType<typeof nextOf>): readonly string[] {
  return next.type === "words" ? next.words.map(({ word }) => word) : [next.type];
}

type Found = readonly [path: readonly string[], command: Command];

function all(command: Command, path: readonly string[] = []): readonly Found[] {
  const below = command.commands.filter((each) => each.name() !== "help");
  return [[path, command], ...below.flatMap((each) => all(each, [...path, each.name()]))];
}

test("names of tags come from the server that the line names, and are those that begin so", async () => {
  const asked: unknown[] = [];
  const names = ["shop:orders", "shop:returns"];
  const { address, stop } = await playServer({
    listTags: (request: unknown) => {
      asked.push(request);
      const tags = names.map((name) => ({ ...someTag(name), description: "a\nb" }));
      return { tags, unreachable: [], nextPageToken: "" };
    },
  });
  onTestFinished(stop);
  const words = ["--address", address, "id", "next", "shop:"];
  expect(await completed(...words)).toEqual(names);
  expect(asked).toMatchObject([{ prefix: "shop:", showDeleted: false }]);
  // Nothing of a description can be taken for another name.
  const fish = await idmint(["completion", "fish", "--", ...words]);
  expect(fish.out).toBe("words\nshop:orders\ta\\u000ab\nshop:returns\ta\\u000ab\n");
  const zsh = await idmint(["completion", "zsh", "--", ...words]);
  expect(zsh.out).toContain(String.raw`shop\:orders:a\u000ab`);
  expect(await completed(...words.slice(0, 2), "tag", "create", "shop:")).toEqual([]);
});

test("a server that refuses, hangs or is not there gives no names, soon and without a word", async () => {
  const { address, stop } = await playServer({
    listTags: () => {
      throw refusal(16, "UNAUTHENTICATED", "no");
    },
  });
  onTestFinished(stop);
  expect(await completed("--address", address, "id", "next", "")).toEqual([]);
  const deaf = createServer();
  await new Promise<void>((resolve) => {
    deaf.listen(0, "127.0.0.1", resolve);
  });
  onTestFinished(() => void deaf.close());
  const { port } = deaf.address() as { port: number };
  const line = ["--address", `127.0.0.1:${port}`, "--timeout", "1h", "id", "next", ""];
  const start = performance.now();
  expect(await completed(...line)).toEqual([]);
  // An hour was asked for. The test's own limit is 30 s.
  expect(performance.now() - start).toBeLessThan(20_000);
  expect(await completed("--address", "nonsense", "id", "next", "")).toEqual([]);
});

test("servers are named as each command takes them", async () => {
  const node = Node.create({ nodeId: "kJ3v0mX2", instance: "host-1:7600" });
  const { address, stop } = await playServer({
    listNodes: () => ListNodesResponse.create({ nodes: [node] }),
  });
  onTestFinished(stop);
  const words = ["--address", address, "node"];
  expect(await completed(...words, "drain", "")).toEqual(["host-1:7600"]);
  expect(await completed(...words, "forget", "")).toEqual(["kJ3v0mX2"]);
});

test("contexts are completed out of their file", async () => {
  const { folder, remove } = temporaryFolder();
  onTestFinished(remove);
  const env = { IDMINT_CONFIG_HOME: folder };
  await idmint(["context", "add", "prod", "--address", "ids.internal:7600"], { env });
  const use = await idmint(["completion", "fish", "--", "context", "use", ""], { env });
  expect(use.out).toBe("words\nprod\tids.internal:7600\n");
  const flag = await idmint(["completion", "bash", "--", "status", "--context=p"], { env });
  expect(flag.out).toBe("words\n--context=prod\n");
});

import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { grpcurl } from "./grpcurl.ts";
import { devServer } from "./dev-server.ts";
import { root, shell, snippet, snippets, words } from "./snippets.ts";

const server = devServer();

/** A snippet as printed, but for the port: the one of the README may be taken on this machine. */
function here(code: string): string {
  return code.replaceAll("127.0.0.1:7600", server.grpcAddress);
}

test("the commands of the README are scripts that run the CLI from source", () => {
  const text = readFileSync(path.join(root, "package.json"), "utf8");
  const { scripts } = JSON.parse(text) as { scripts: Record<string, string> };
  expect(snippet("README.md", "A server", "sh")).toBe("npx --yes pnpm@10 start\n");
  expect(scripts["start"]).toBe("node packages/console/build.ts && exec ./idmint start-dev");
  expect(scripts["idmint"]).toBe("exec ./idmint");
});

test("the README's command lines run as printed", async () => {
  const [commands = ""] = snippets("README.md", "An id", "sh");
  expect(commands).toContain("idmint id next demo");
  const { exitCode, out, err } = await shell(commands, {
    env: { IDMINT_ADDRESS: server.grpcAddress },
  });
  expect([exitCode, err]).toEqual([0, ""]);
  expect(out).toMatch(/^\d+\nname +orders\n/);
  expect(out).toContain('{"tag":"orders","ids":["1","2","3"]}\nUsage: ./idmint ');
});

test("the README's grpcurl lines work, with nothing but what the server says about itself", async () => {
  const [, commands = ""] = snippets("README.md", "An id", "sh");
  const lines = here(commands).trimEnd().split("\n").map(words);
  expect(lines.map(([command]) => command)).toEqual(["grpcurl", "grpcurl", "grpcurl"]);
  const [list, describe, call] = await Promise.all(lines.map(([, ...args]) => grpcurl(args)));
  expect(list).toEqual(
    expect.arrayContaining([
      "grpc.health.v1.Health",
      "idmint.v1.IdService",
      "idmint.v1.NodeService",
      "idmint.v1.TagService",
    ]),
  );
  expect(describe).toMatchObject({
    methods: expect.arrayContaining(["GenerateId", "AllocateSegment"]) as string[],
    comments: expect.stringContaining("Mints one id.") as string,
  });
  expect(call).toEqual({ id: expect.stringMatching(/^\d+$/) as string, epoch: "1" });
});

test("the README's SDK snippet runs as printed", async () => {
  const chapter = "The SDK";
  const code = here(snippet("README.md", chapter, "js"));
  const command = snippet("README.md", chapter, "sh");
  expect(command).toContain(" try.mjs");
  // From standard input instead of a file, so that nothing is left in the clone.
  const line = command.replace("try.mjs", "--input-type=module -");
  const { exitCode, out, err } = await shell(line, { input: code });
  expect([exitCode, err]).toEqual([0, ""]);
  expect(out).toMatch(/^\d+n\n\d+\n\d+n\n\[\s+\{ base: \d+n, increment: 1, count: \d+ \}/);
});

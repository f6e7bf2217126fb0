import { configFlags } from "@idmint/server";
import type { Command } from "commander";
import { expect, test } from "vitest";
import { createProgram } from "../src/program.ts";
import { idmint } from "./support.ts";

const silent = {
  env: {},
  out: async () => {},
  err: () => {},
  signal: new AbortController().signal,
};

function leaves(command: Command): string[][] {
  if (command.commands.length === 0) return [[command.name()]];
  return command.commands.flatMap((child) =>
    leaves(child).map((path) => [command.name(), ...path]),
  );
}

const commands = leaves(await createProgram(silent)).map(([, ...path]) => path);

test("every command of the design is there", () => {
  expect(commands.map((path) => path.join(" ")).toSorted()).toEqual([
    "audit list",
    "bench",
    "completion",
    "config check",
    "context add",
    "context list",
    "context remove",
    "context show",
    "context use",
    "doctor",
    "figures",
    "health",
    "help",
    "id decode",
    "id encode",
    "id next",
    "id range",
    "id who",
    "migrate",
    "node drain",
    "node forget",
    "node list",
    "node undrain",
    "node weight",
    "resume-issuing",
    "serve",
    "start-dev",
    "status",
    "stop-issuing",
    "store accept",
    "store adopt",
    "store spread add",
    "store spread move",
    "store spread status",
    "store status",
    "tag advance",
    "tag capacity",
    "tag create",
    "tag delete",
    "tag get",
    "tag import",
    "tag list",
    "tag move",
    "tag pause",
    "tag periods",
    "tag resume",
    "tag return-to-period",
    "tag update",
    "ticket accept",
    "ticket apply",
    "ticket forget",
    "ticket migrate",
    "ticket plan",
    "ticket status",
    "token create",
    "token list",
    "token revoke",
    "verify",
    "version",
    "watch",
    "worker list",
    "worker release",
  ]);
});

test.each(commands.map((path) => [path.join(" "), path] as const))(
  "idmint %s --help describes it with an example, on stdout",
  async (name, path) => {
    const { exitCode, out, err } = await idmint([...path, "--help"]);
    expect([exitCode, err]).toEqual([0, ""]);
    expect(out).toContain(`Usage: idmint ${name}`);
    expect(out).toContain(`$ idmint ${name}`);
    const viaHelp = await idmint(["help", ...path]);
    expect(viaHelp.out).toBe(out);
  },
);

test("the commands about servers have a flag for every option of the server that may have one", async () => {
  const wanted = configFlags().map(({ flags }) => flags);
  for (const command of ["serve", "start-dev", "config check", "doctor"]) {
    const { out } = await idmint([...command.split(" "), "--help"]);
    for (const flags of wanted) expect(out).toContain(flags);
  }
  const { out } = await idmint(["migrate", "--help"]);
  expect(out).toContain("--store-url <url>");
  expect(out).not.toContain("--grpc-address");
});

test("a command that is missing prints the help on stderr", async () => {
  const { exitCode, out, err } = await idmint(["tag"]);
  expect([exitCode, out]).toEqual([2, ""]);
  expect(err).toContain("Usage: idmint tag");
});

test.each([
  ["Servers and their store:", "node"],
  ["Ids and tags:", "worker"],
  ["What servers do and did:", "audit"],
  ["What servers do and did:", "bench"],
  ["This command line:", "context"],
])("in the help %s has %s", async (group, command) => {
  const { out } = await idmint(["--help"]);
  const its = out.slice(out.indexOf(group)).split("\n\n")[0];
  expect(its).toMatch(new RegExp(`^  ${command}\\b`, "m"));
});

import { expect, test } from "vitest";
import { asTyped, commandName } from "../../src/process/command-name.ts";
import { createProgram } from "../../src/program.ts";
import { idmint } from "../support.ts";

test.each([
  [{}, "idmint"],
  [{ IDMINT_COMMAND: "./idmint" }, "./idmint"],
  [{ IDMINT_COMMAND: "../clone/idmint", npm_lifecycle_event: "start" }, "../clone/idmint"],
  [{ IDMINT_COMMAND: "" }, "idmint"],
  [{ npm_lifecycle_event: "npx" }, "npx idmint"],
])("with %j the command is typed as %s", (env, name) => {
  expect(commandName({ env })).toBe(name);
});

test("only commands are named anew, and no path, package or sentence", () => {
  const io = { env: { IDMINT_COMMAND: "./idmint$&" } };
  expect(asTyped("see `idmint tag get a` or idmint migrate", io)).toBe(
    "see `./idmint$& tag get a` or ./idmint$& migrate",
  );
  for (const text of [
    "sqlite:/var/lib/idmint store",
    "idmint: tag",
    "@idmint/client",
    "idmint serves ids",
    "x-idmint tag",
  ]) {
    expect(asTyped(text, io)).toBe(text);
  }
});

test("every command is named anew", async () => {
  const io = { env: { IDMINT_COMMAND: "./idmint" } };
  const silent = { ...io, out: async () => {}, err: () => {}, signal: AbortSignal.abort() };
  for (const command of (await createProgram(silent)).commands) {
    const line = `idmint ${command.name()} `;
    expect(asTyped(line, io)).toBe(`./${line}`);
  }
});

test("usage, examples and hints name the command as it was typed; JSON does not change", async () => {
  const env = { IDMINT_COMMAND: "./idmint", IDMINT_ADDRESS: "127.0.0.1:1" };
  const help = await idmint(["tag", "create", "--help"], { env });
  expect(help.out).toContain("Usage: ./idmint tag create");
  expect(help.out).toContain("$ ./idmint tag create orders");
  const refused = await idmint(["status"], { env });
  expect(refused.err).toContain("start a server with `./idmint start-dev`");
  const { out: root } = await idmint([], { env });
  expect(root).toBe("");
  const json = await idmint(["tag", "create", "a b", "--json"], { env });
  expect(json.err).not.toContain("./idmint");
});

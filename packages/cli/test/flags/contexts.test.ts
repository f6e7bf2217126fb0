import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { contextFor, contextsFile, readContexts, writeContexts } from "../../src/flags/contexts.ts";
import { resolveConnection } from "../../src/flags/options.ts";
import { idmint } from "../support.ts";

const pem = (file: string) => Buffer.from(`-----BEGIN ${file}-----\nMA==\n-----END ${file}-----\n`);

type Run = (...args: string[]) => ReturnType<typeof idmint>;

/** A command line with these variables. */
const cliOf =
  (env: Record<string, string>): Run =>
  (...args) =>
    idmint(args, { env });

/** A command line with a folder of its own for contexts. */
function fresh(env: Record<string, string> = {}) {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-contexts-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const all = { IDMINT_CONFIG_HOME: path.join(folder, "config"), ...env };
  const file = contextsFile(all) ?? "";
  const run = (...args: string[]) => cliOf(all)(...args);
  return { folder, file, env: all, run };
}

type Shown = { settings: { setting: string; value: string; source: string }[] };

async function shown(
  run: (...args: string[]) => Promise<{ out: string }>,
  ...args: string[]
): Promise<Record<string, string>> {
  const { out } = await run("context", "show", "--json", ...args);
  const { settings } = JSON.parse(out) as Shown;
  return Object.fromEntries(
    settings.map(({ setting, value, source }) => [setting, `${value} < ${source}`]),
  );
}

test("contexts are added, listed, used, shown and removed, in a file for their owner alone", async () => {
  const { run, file, env } = fresh();
  expect(await run("context", "add", "dev", "--address", "127.0.0.1:7600")).toMatchObject({
    exitCode: 0,
  });
  await run(
    "context",
    "add",
    "prod",
    "--address",
    "ids.internal:7600",
    "--tls",
    "--token-file",
    "t",
  );
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(statSync(path.dirname(file)).mode & 0o777).toBe(0o700);
  expect(await shown(run)).toEqual({ address: "127.0.0.1:7600 < context dev" });
  await run("context", "use", "prod");
  const listed = (await run("context", "list")).out;
  expect(listed).toMatch(
    /^ +NAME +ADDRESS +TLS +TOKEN\n +dev +127\.0\.0\.1:7600 +no +no\n\* +prod +ids\.internal:7600 +yes +yes\n$/u,
  );
  expect(await shown(run)).toEqual({
    address: "ids.internal:7600 < context prod",
    tls: "true < context prod",
    "token-file": `${path.resolve("t")} < context prod`,
  });
  await run("context", "remove", "prod");
  expect(readContexts(env).current).toBeUndefined();
  expect(await shown(run)).toEqual({ address: "127.0.0.1:7600 < default" });
  const { exitCode, err } = await run("context", "use", "prod");
  expect([exitCode, err.includes("must be one of dev")]).toEqual([2, true]);
});

test("flags win over variables, variables over the context, and a context can be named by either", async () => {
  const { run, env } = fresh();
  await run("context", "add", "a", "--address", "a.internal:1", "--tls", "--token-file", "a.token");
  await run("context", "add", "b", "--address", "b.internal:1");
  expect(await shown(run, "--context", "b")).toEqual({ address: "b.internal:1 < context b" });
  expect(await shown(cliOf({ ...env, IDMINT_CONTEXT: "b" }))).toEqual({
    address: "b.internal:1 < context b",
  });
  const both = cliOf({ ...env, IDMINT_TOKEN: "id_secret", IDMINT_CONTEXT: "b" });
  expect(await shown(both, "--context", "a", "--ca-file", "/ca.pem")).toEqual({
    address: "a.internal:1 < context a",
    tls: "true < context a",
    "ca-file": "/ca.pem < --ca-file",
    token: "(secret) < IDMINT_TOKEN",
  });
  const { exitCode, err } = await run("status", "--context", "c");
  expect([exitCode, err.includes("must be one of a, b")]).toEqual([2, true]);
});

test("no part of the current context goes to a server that a flag or variable names", async () => {
  const { run, env } = fresh();
  await run("context", "add", "a", "--address", "a.internal:1", "--tls", "--token-file", "a.token");
  expect(await shown(run, "--address", "evil.example:1")).toEqual({
    address: "evil.example:1 < --address",
  });
  expect(await shown(cliOf({ ...env, IDMINT_ADDRESS: "evil.example:1" }))).toEqual({
    address: "evil.example:1 < IDMINT_ADDRESS",
  });
  // Whoever names both means both.
  expect(await shown(run, "--address", "b.internal:1", "--context", "a")).toMatchObject({
    address: "b.internal:1 < --address",
    "token-file": expect.stringContaining("a.token") as string,
  });
});

test("a token never comes by an argument, and is shown nowhere", async () => {
  const { run, file, env } = fresh();
  const refused = await run("context", "add", "a", "--address", "a:1", "--token", "canary-1");
  expect([refused.exitCode, refused.err.includes("--token-file")]).toEqual([2, true]);
  expect(refused.err).not.toContain("canary-1");
  writeContexts(env, {
    current: "a",
    byName: new Map([["a", { address: "127.0.0.1:1", token: "canary-2" }]]),
  });
  for (const args of [["list"], ["list", "--json"], ["show"], ["show", "--json"]]) {
    const { out, err } = await run("context", ...args);
    expect(out + err).not.toContain("canary-2");
  }
  expect(readFileSync(file, "utf8")).toContain("canary-2");
  const found = contextFor({}, env, () => readContexts(env));
  expect(resolveConnection({}, {}, () => Buffer.of(), found).token).toBe("canary-2");
  const far = { name: "a", context: { address: "far.internal:1", token: "canary-2" } };
  expect(() => resolveConnection({}, {}, () => Buffer.of(), far)).toThrow(/plain text/u);
});

test.each([0o640, 0o604, 0o660, 0o622])("a file with the mode %o is refused", async (mode) => {
  const { run, file } = fresh();
  await run("context", "add", "a", "--address", "127.0.0.1:1");
  chmodSync(file, mode);
  for (const args of [
    ["status"],
    ["context", "list"],
    ["context", "add", "b", "--address", "b:1"],
  ]) {
    const { exitCode, err } = await run(...args);
    expect([exitCode, err.includes(`chmod 600 ${file}`)]).toEqual([2, true]);
  }
  // Commands that name their server read no context.
  const { err } = await run("status", "--address", "127.0.0.1:1", "--timeout", "50ms");
  expect(err).not.toContain("chmod");
});

test.each([
  "",
  "{",
  "[]",
  '{"contexts":{"a":{}}}',
  '{"contexts":{"a":{"address":1}}}',
  '{"current":"b","contexts":{}}',
  '{"contexts":{"a":{"address":"a:1","tokn":"x"}}}',
])("a file that holds %j is refused by its name", async (text) => {
  const { run, file } = fresh();
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text, { mode: 0o600 });
  const { exitCode, err } = await run("context", "list");
  expect([exitCode, err.includes(file)]).toEqual([2, true]);
});

test("a certificate and its key come together, and without TLS nothing proves anything", () => {
  const both = { certFile: "CERTIFICATE", keyFile: "PRIVATE KEY", address: "a:1" };
  const found = { name: "a", context: both };
  expect(resolveConnection({}, {}, pem, found).tls).toEqual({
    caPem: undefined,
    certPem: pem("CERTIFICATE"),
    keyPem: pem("PRIVATE KEY"),
  });
  expect(() => resolveConnection({ certFile: "CERTIFICATE" }, {}, pem, found)).toThrow(/together/u);
  const swapped = { name: "a", context: { ...both, certFile: "PRIVATE KEY" } };
  expect(() => resolveConnection({}, {}, pem, swapped)).toThrow(/without a PEM certificate/u);
});

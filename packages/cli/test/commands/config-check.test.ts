import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { idmint, type CommandResult } from "../support.ts";

function yaml(content: string): string {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-check-"));
  onTestFinished(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  const file = path.join(folder, "idmint.yaml");
  writeFileSync(file, content);
  return file;
}

function check(
  content: string,
  ...more: readonly string[]
): Promise<CommandResult & { file: string }> {
  const file = yaml(content);
  const env = { IDMINT_LOG_LEVEL: "warn", IDMINT_STORE_PASSWORD: "hunter2" };
  return idmint(["config", "check", "--config", file, ...more], { env }).then((ran) => ({
    ...ran,
    file,
  }));
}

const GOOD = `
log: { level: error, format: text }
store: { url: "postgres://me@db.internal/ids?sslrootcert=hidden", pool_size: 7 }
alarm: { webhook_url: "https://hooks.example/secret-path" }
`;

test("it shows where each option comes from, and no secret", async () => {
  const { exitCode, out, err, file } = await check(GOOD, "--drain-time", "9s", "--json");
  expect([exitCode, err]).toEqual([0, ""]);
  const { options } = JSON.parse(out) as {
    options: { key: string; value: string | null; source: string }[];
  };
  const found = new Map(options.map(({ key, value, source }) => [key, [value, source]]));
  const expected = {
    drain_time: ["9s", "--drain-time"],
    "log.level": ["warn", "IDMINT_LOG_LEVEL"],
    "log.format": ["text", `${file}: log.format`],
    "store.pool_size": ["7", `${file}: store.pool_size`],
    "store.url": ["postgres://db.internal/ids?…", `${file}: store.url`],
    "store.password": ["(secret)", "IDMINT_STORE_PASSWORD"],
    "alarm.webhook_url": ["(secret)", `${file}: alarm.webhook_url`],
    "grpc.address": ["127.0.0.1:7600", "default"],
    "node.advertise": [null, "default"],
  };
  for (const [key, row] of Object.entries(expected))
    expect([key, found.get(key)]).toEqual([key, row]);
  expect(out).not.toMatch(/hunter2|secret-path|hidden/);
  // The same as text, without what nobody set.
  const text = await check(GOOD, "--set-only");
  expect(text.out).toMatch(/^log\.format +text +\S+: log\.format$/m);
  expect(text.out).not.toContain("grpc.address");
});

// Each is wrong by itself, whatever else is.
const WRONG: readonly (readonly [yaml: string, told: RegExp])[] = [
  ["grpc: { address: 7600 }", /grpc\.address must be host:port/],
  ["lgo: { level: info }", /lgo is not an option/],
  ["limits: { waiters: 0, calls: many }", /limits\.calls must be an integer from 1/],
  ["limits: { waiters: 0, calls: many }", /limits\.waiters must be an integer from 1/],
  ["tls: { cert_file: a.pem }", /tls\.cert_file and tls\.key_file must be set together/],
  ["store: { user: root }", /store\.user needs a store\.url of etcd/],
  ["drain_time: 5", /drain_time must be a duration with its unit/],
  ["alarm: { webhook_url: 'http://me:hunter2@hooks.example' }", /alarm\.webhook_url must be/],
];

test("it reports all errors at once, those of rules across options too", async () => {
  const lines = new Set(WRONG.map(([line]) => line));
  const { exitCode, out, err } = await check([...lines].join("\n"));
  expect([exitCode, out]).toEqual([2, ""]);
  for (const [, told] of WRONG) expect(err).toMatch(told);
  expect(err).toContain(`the configuration has ${WRONG.length} errors`);
  expect(err).not.toContain("hunter2");
  const json = await check([...lines].join("\n"), "--json");
  const { error } = JSON.parse(json.err) as { error: { exitCode: number; fields: unknown[] } };
  expect([error.exitCode, error.fields.length]).toEqual([2, WRONG.length]);
});

test("a value that is wrong is not also said to contradict others", async () => {
  const { err } = await check(
    "store: { url: 'mysql://h/ids', more_urls: 'b=postgres://h/b' }\nepoch_gap: 5\n",
  );
  expect(err).toContain("the configuration has 1 error\n");
});

test("a file that is no YAML is told with every place where it is not", async () => {
  const { exitCode, err } = await check("a: 1\na: 2\nb: 1\nb: 2\n");
  expect(exitCode).toBe(2);
  expect(err).toMatch(/line 2[^]*line 4/);
  const many = await check("a: 1\n".repeat(13));
  expect(many.err).toContain("line 11, column 1; and 2 more\n");
});

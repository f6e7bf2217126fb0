import { expect, test } from "vitest";
import { grpcurl } from "./grpcurl.ts";
import { devServer } from "./dev-server.ts";
import { shell, snippet, words } from "./snippets.ts";

const FILE = "docs/snowflake.md";

const server = devServer();

async function run(lines: string): Promise<string> {
  const env = { IDMINT_ADDRESS: server.grpcAddress };
  const { exitCode, out, err } = await shell(lines, { env });
  expect([exitCode, err.replaceAll(/^idmint: dry run, .*\n/gm, "")]).toEqual([0, ""]);
  return out;
}

test("the command lines of docs/snowflake.md run as printed, and so does its program", async () => {
  const made = await run(snippet(FILE, "Snowflakes", "sh"));
  expect(made).toMatch(/^layout +41-10-12$/m);
  expect(made).toMatch(/^(?:\d{18}\n){3}/m);
  expect(made).toMatch(/^layout +41-5-5-12\n/m);
  expect(made).toMatch(/^layout +41-5-7\n/m);
  expect(made).toMatch(/^layout +41-2-20\n[^]*^clock policy +backup-worker$/m);
  expect(made).toMatch(/^DATA CENTER .*\n0 +0 +leased /m);

  const code = snippet(FILE, "In the SDK", "js").replace("127.0.0.1:7600", server.grpcAddress);
  const line = "npx pnpm@10 exec node -C idmint-source --input-type=module -";
  const program = await shell(line, { input: code });
  expect([program.exitCode, program.err]).toEqual([0, ""]);
  expect(program.out).toMatch(/^true 1[89]\ntrue\n$/);

  const composed = await run(snippet(FILE, "Ids and times", "sh"));
  expect(composed).toMatch(/^117647899877351431\n/);
  expect(composed).toMatch(/^time +2026-11-21T15:30:45\.123Z$/m);
  expect(composed).toMatch(/^worker +42\nsequence +7$/m);
  const [smallest = "", largest = ""] = composed.trimEnd().split("\n").slice(-2);
  expect(BigInt(words(smallest)[1] ?? "") < 117647899877351431n).toBe(true);
  expect(BigInt(words(largest)[1] ?? "") > 117647899877351431n).toBe(true);
});

/** Sends a line of grpcurl to the test's server. */
function send(line: string | undefined, reserveUntilMs = 0): Promise<unknown> {
  const here = line
    ?.replace("127.0.0.1:7600", server.grpcAddress)
    .replace(/(?<="reserve_until_ms":")\d+/, String(reserveUntilMs));
  const [command, ...args] = words(here ?? "");
  expect(command).toBe("grpcurl");
  return grpcurl(args);
}

test("a worker id is leased, renewed and released by the grpcurl lines of docs/snowflake.md", async () => {
  const [create = "", ...lines] = snippet(FILE, "Other languages", "sh").trimEnd().split("\n");
  await run(create);
  const [lease, renewal, release, list] = lines;
  const leased = await send(lease);
  expect(leased).toMatchObject({
    token: "2147483648",
    ttl: "30s",
    snowflake: { layout: { timeBits: 41, workerBits: 10, sequenceBits: 12 } },
  });
  // However long the calls take, it is more than the lease reserves.
  const { reservedUntilMs } = leased as { reservedUntilMs: string };
  const reserveUntilMs = Number(reservedUntilMs) + 1_000;
  expect(await send(renewal, reserveUntilMs)).toMatchObject({
    token: "2147483649",
    reservedUntilMs: String(reserveUntilMs),
  });
  expect(await send(release)).toEqual({});
  expect(await send(list)).toMatchObject({ workers: [{ instance: "go-0" }] });
  expect(lines).toHaveLength(4);
});

// What a real server gave out, and a million rows.
import { spawn } from "node:child_process";
import { openSync, readFileSync, writeFileSync, writeSync } from "node:fs";
import path from "node:path";
import { afterAll, expect, test } from "vitest";
import { devServer } from "../../dev-server.ts";
import { cleanEnv, cli, CLI, temporaryFolder, untilEnd } from "../../spawn.ts";

const server = devServer();
const { folder, remove } = temporaryFolder();
afterAll(remove);
const file = (name: string): string => path.join(folder, name);

/** What a caller writes down: the answer, and the tag that it asked for. The command line lists ids of periods singly. */
async function history(name: string, tag: string, ...more: string[]): Promise<string> {
  const answer = await server.json<{ periodIds?: object[] }>("id", "next", tag, ...more);
  const rows = answer.periodIds ?? [answer];
  const lines = rows.map((row) => JSON.stringify({ tag, ...row, who: name }));
  writeFileSync(file(name), lines.join("\n"));
  return file(name);
}

test("what a server gave out has no id twice, and none above its floor", async () => {
  await server.out("tag", "create", "orders");
  await server.out(
    "tag",
    "create",
    "invoices",
    "--kind",
    "sequence",
    "--period",
    "day",
    "--time-zone",
    "Etc/UTC",
  );
  const files = [
    await history("a", "orders", "--count", "1000"),
    await history("b", "orders"),
    await history("c", "invoices", "--count", "10"),
  ];
  // Another epoch goes on above.
  const advanced = await server.idmint("tag", "advance", "orders", "--floor", "500000", "--yes");
  expect(advanced.exitCode).toBe(0);
  files.push(await history("d", "orders", "--count", "1000"));
  const place = { env: { IDMINT_ADDRESS: server.grpcAddress } };
  const good = await cli(["verify", ...files], place);
  expect([good.exitCode, good.err]).toEqual([0, ""]);
  expect(good.out).toContain("13 rows with 2011 ids of 2 tags, and none is above its tag's floor");
  const again = await cli(["verify", "--json", files[0] ?? "", files[0] ?? ""], place);
  expect([again.exitCode, JSON.parse(again.out)]).toMatchObject([5, { ok: false, faultCount: 1 }]);
});

/** Processor time of reading a file of lines and parsing them, by which a limit fits quick machines and slow ones. */
function secondsToParse(name: string): number {
  const before = process.cpuUsage();
  for (const line of readFileSync(name, "utf8").split("\n")) if (line !== "") JSON.parse(line);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e6;
}

/** Verifying takes at most so many times as long as parsing. It took 4.9 times; where parsing takes 1.2 s, this is 10 s. */
const PARSES = 8;

test("one overlap planted into a million rows is found soon, in bounded memory", async () => {
  const rows = 1_000_000;
  const out = openSync(file("million"), "w");
  let lines: string[] = [];
  // Ids of all rows in an order without neighbours: 7,919 has no factor in common with a million.
  for (let at = 0; at < rows; at++) {
    const base = ((at * 7_919) % rows) * 20 + 1;
    lines.push(
      `{"tag":"orders","segments":[{"base":"${base}","count":10,"increment":"1"}],"who":"shop-${at % 64}"}\n`,
    );
    if (lines.length === 10_000) {
      writeSync(out, lines.join(""));
      lines = [];
    }
  }
  writeFileSync(
    file("planted"),
    `{"tag":"orders","ids":["11","12","13"]}\n{"tag":"orders","id":"12345665","who":"twin"}\n`,
  );
  // Time of the processor, since the machine of a test has more to do than this; and less memory than the rows would take
  // as objects.
  const script = '"$@"; code=$?; times >&2; exit $code';
  const args = [...CLI, "verify", "--json", file("million"), file("planted")];
  const env = { ...cleanEnv(), NODE_OPTIONS: "--max-old-space-size=128" };
  const ran = await untilEnd(
    spawn("sh", ["-c", script, "sh", ...args], { env, stdio: ["ignore", "pipe", "pipe"] }),
  );
  expect([ran.exitCode, JSON.parse(ran.out)]).toMatchObject([
    5,
    {
      rows: rows + 2,
      faultCount: 1,
      faults: [
        {
          first: "12345665",
          last: "12345665",
          holders: [{ file: file("million") }, { file: file("planted"), line: 2, who: "twin" }],
        },
      ],
    },
  ]);
  // The last line is of the children: minutes and seconds in the program, and in the system for it.
  const [, user = "", system = ""] = /(\S+)s (\S+)s\s*$/.exec(ran.err) ?? [];
  const seconds = [user, system].map((text) => {
    const [minutes = "", rest = ""] = text.split("m");
    return Number(minutes) * 60 + Number(rest);
  });
  expect(seconds.every((its) => its > 0)).toBe(true);
  const floor = secondsToParse(file("million"));
  expect(Math.max(...seconds) / floor).toBeLessThan(PARSES);
});

import { once } from "node:events";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test } from "vitest";
import { cli, serve, start, temporaryFolder } from "../../spawn.ts";
import { installIn, onTerminal } from "../../terminal.ts";

interface Line {
  readonly issuedIds?: string;
  readonly issuedPerSecond?: number | null;
  readonly notAllowedLastMinute?: string | null;
  readonly nodes?: readonly { readonly alive: boolean; readonly issuedPerSecond: number | null }[];
  readonly tags?: readonly {
    readonly name: string;
    readonly left: string;
    readonly floor: string;
  }[];
  readonly error?: { readonly reason: string };
}

test("one line of JSON a second, across a restart of the server, until Ctrl-C", async () => {
  const { folder, remove } = temporaryFolder();
  onTestFinished(remove);
  const first = await serve(["start-dev"], { cwd: folder });
  onTestFinished(async () => void (await first.stop()));
  const env = { IDMINT_ADDRESS: first.grpcAddress };
  expect((await cli(["tag", "create", "orders", "--ceiling", "int32"], { env })).exitCode).toBe(0);
  const watch = start(["watch", "orders"], { env });
  onTestFinished(() => void watch.kill("SIGKILL"));
  const ended = once(watch, "close");
  const lines = createInterface({ input: watch.stdout! })[Symbol.asyncIterator]();
  const until = async (wanted: (line: Line) => boolean): Promise<Line> => {
    for (;;) {
      const { value, done } = await lines.next();
      if (done === true) throw new Error("the watch ended");
      const line = JSON.parse(value) as Line;
      if (wanted(line)) return line;
    }
  };
  await cli(["id", "next", "orders", "--count", "500"], { env });
  const line = await until(({ issuedIds }) => issuedIds === "500");
  expect(line.nodes).toMatchObject([{ alive: true }]);
  const [orders] = line.tags ?? [];
  expect(orders?.name).toBe("orders");
  expect(Number(orders?.floor)).toBeGreaterThanOrEqual(500);
  expect(Number(orders?.floor) + Number(orders?.left)).toBe(2 ** 31 - 1);
  expect(line.notAllowedLastMinute).toBe("0");

  const all = await until(({ nodes }) => nodes?.[0]?.issuedPerSecond !== null);
  expect(all.nodes?.[0]?.issuedPerSecond).toBeGreaterThanOrEqual(0);
  const figures = async (...args: string[]): Promise<string> =>
    (await cli(["figures", ...args], { env })).out;
  expect(await figures()).toMatch(/^SERVER +ZONE +STATE +IDS\/S[^]*SERVING/);
  expect(await figures("orders", "--seconds", "60")).toMatch(/IN MEMORY +LASTS/);
  expect(JSON.parse(await figures("--json"))).toMatchObject({ silentNodes: [] });

  first.child.kill("SIGKILL");
  const away = await until(({ error }) => error !== undefined);
  expect(away.error?.reason).toBe("SERVER_UNAVAILABLE");
  const second = await serve(["start-dev"], { cwd: folder }, first.grpcAddress);
  onTestFinished(async () => void (await second.stop()));
  // A new process counts from 0, and no rate is made of the two.
  const again = await until(({ issuedIds }) => issuedIds === "0");
  expect(again.issuedPerSecond ?? 0).toBe(0);
  watch.kill("SIGINT");
  expect(await ended).toEqual([0, null]);
});

test("a terminal is drawn anew each second", async () => {
  const { folder, remove } = temporaryFolder();
  onTestFinished(remove);
  installIn(folder);
  const server = await serve(["start-dev"], { cwd: folder });
  onTestFinished(async () => void (await server.stop()));
  const watch = onTerminal(`'${folder}/idmint' watch --count 2`, {
    IDMINT_ADDRESS: server.grpcAddress,
  });
  onTestFinished(watch.end);
  await watch.until(/(?:TAG +STATE +GRANTED +LEFT\s+demo +active[^]*){2}/);
  expect(watch.raw().split("\u001B[H\u001B[J")).toHaveLength(3);
  await watch.ended;
});

import { DeleteTagResponse, type Tag } from "@idmint/proto";
import { expect, onTestFinished, test } from "vitest";
import { against, idmint, playServer, refusal, someTag } from "../../support.ts";

/** A server that has one tag, and what it was asked for. */
function played(generateId: (call: number) => unknown): {
  readonly play: Parameters<typeof playServer>[0];
  readonly asked: string[];
} {
  const asked: string[] = [];
  let calls = 0;
  return {
    asked,
    play: {
      createTag: ({ tag }: { tag: Tag }) => {
        asked.push(`create ${tag.name.slice(0, 6)} ${tag.kind?.$case}`);
        return { tag: someTag(tag.name) };
      },
      getTag: ({ name }: { name: string }) => ({ tag: someTag(name) }),
      deleteTag: ({ name }: { name: string }) => {
        asked.push(`delete ${name.slice(0, 6)}`);
        return DeleteTagResponse.create({ tag: someTag(name) });
      },
      generateId: () => {
        calls += 1;
        return generateId(calls);
      },
    },
  };
}

const id = (value: number): unknown => ({ id: BigInt(value), epoch: 1n, period: "", text: "" });

test("a run of its own tag makes it, mints exactly the calls, and deletes it", async () => {
  const { play, asked } = played(id);
  const { exitCode, out, err } = await against(
    play,
    "bench",
    "--calls",
    "500",
    "--duration",
    "2m",
    "--json",
  );
  expect([exitCode, err]).toEqual([0, ""]);
  expect(asked).toEqual(["create bench- segment", "delete bench-"]);
  expect(JSON.parse(out)).toMatchObject({
    madeForRun: true,
    loop: "closed",
    ended: "over",
    calls: 500,
    ids: "500",
    repeats: 0,
    refused: {},
    latencyMs: { p50: expect.any(Number) as number, "p99.9": expect.any(Number) as number },
  });
});

test("a server that answers an id twice is found out", async () => {
  const { play, asked } = played((call) => id(call === 77 ? 76 : call));
  const { exitCode, out, err } = await against(play, "bench", "--calls", "100");
  expect(exitCode).toBe(5);
  expect(out).toMatch(/^repeated ids +1$/m);
  expect(err).toMatch(/UNHEALTHY: ids of tag bench-\w+ came more than once: 76;/);
  // Whoever looks into it needs the tag.
  expect(asked).toEqual(["create bench- segment"]);
});

test("refusals are counted by their reason, and are no answers", async () => {
  const { play } = played((call) => {
    if (call % 2 === 0) throw refusal(8, "OVERLOADED", "OVERLOADED: too much");
    return id(call);
  });
  const half = await against(play, "bench", "--calls", "40", "--rate", "1000", "--json");
  expect(JSON.parse(half.out)).toMatchObject({
    calls: 20,
    refused: { OVERLOADED: 20 },
    repeats: 0,
  });
  expect(half.exitCode).toBe(0);
  const { play: never } = played(() => {
    throw refusal(14, "STORE_UNAVAILABLE", "STORE_UNAVAILABLE: away");
  });
  const none = await against(never, "bench", "--calls", "3", "--in-flight", "1");
  expect(none.exitCode).toBe(4);
  expect(none.err).toMatch(/^idmint: STORE_UNAVAILABLE: no call was answered/);
  const { play: paused } = played(() => {
    throw refusal(9, "TAG_PAUSED", "TAG_PAUSED: orders is paused");
  });
  const all = await against(paused, "bench", "--calls", "3", "--json");
  expect(JSON.parse(all.err)).toMatchObject({
    error: { code: "FAILED_PRECONDITION", reason: "TAG_PAUSED" },
  });
});

test("a tag that is there is not touched unless told, since the ids are lost", async () => {
  const { play, asked } = played(id);
  const { address, stop } = await playServer(play);
  onTestFinished(stop);
  const bench = (...args: string[]) => idmint(["bench", "orders", "--address", address, ...args]);
  const refused = await bench("--calls", "5");
  expect(refused.exitCode).toBe(2);
  expect(refused.err).toMatch(
    /--yes is required: this mints ids of tag "orders" .* nobody gets them/,
  );
  const taken = await bench("--calls", "5", "--yes", "--json");
  expect(JSON.parse(taken.out)).toMatchObject({ tag: "orders", madeForRun: false, calls: 5 });
  expect(asked).toEqual([]);
});

test.each([
  [["--in-flight", "2000"], "--in-flight must be at most 1024 a connection; add --connections"],
  [["--count", "5"], "--count needs --mode batch"],
  [["orders", "--kind", "uuid"], "--kind is for a tag that is made for the run"],
  [["--duration", "2h"], "--duration must be a time"],
  [["--calls", "0"], "--calls must be a whole number from 1 to 10000000"],
  [["--mode", "fast"], "--mode must be one of call, batch, stream, sdk"],
])("%j is refused before anything is made", async (args, message) => {
  const { play, asked } = played(id);
  const { exitCode, err } = await against(play, "bench", ...args);
  expect(exitCode).toBe(2);
  expect(err).toContain(message);
  expect(asked).toEqual([]);
});

test("Ctrl-C ends a run, with what it has, and removes its tag", async () => {
  const ending = new AbortController();
  const { play, asked } = played((call) => {
    if (call === 50) ending.abort();
    return id(call);
  });
  const { address, stop } = await playServer(play);
  onTestFinished(stop);
  const args = ["bench", "--duration", "1h", "--json", "--address", address];
  const { out } = await idmint(args, { signal: ending.signal });
  const { ended, calls } = JSON.parse(out) as { ended: string; calls: number };
  expect(ended).toBe("interrupted");
  expect(calls).toBeGreaterThanOrEqual(50);
  expect(asked).toEqual(["create bench- segment", "delete bench-"]);
});

// What `--wait` tells while it waits.
import { expect, onTestFinished, test } from "vitest";
import { against, idmint, playServer, someTag } from "../../support.ts";

const CHANGE = { laggingNodes: [], laggingNodeCount: 0 };
const UNTIL_MS = Date.parse("2026-11-22T14:28:13.000Z");

/** An answer that names one server to wait for. */
function named(nodeId: string, stopMs: number): object {
  const stopTime = new Date(stopMs);
  return {
    inEffect: false,
    laggingNodes: [{ nodeId, instance: nodeId, database: "", stopTime }],
    laggingNodeCount: 1,
    effectiveTime: stopTime,
  };
}

/** The lines on stderr of a wait whose server gives these answers, one after the other. */
async function linesOf(answers: readonly object[]): Promise<readonly string[]> {
  const left = [...answers];
  const play = {
    pauseTag: () => ({ tag: someTag("a"), ...CHANGE }),
    getTagEffect: () => ({
      ...CHANGE,
      tag: someTag("a"),
      ...(left.shift() ?? { inEffect: true }),
    }),
  };
  const { exitCode, err } = await against(play, "tag", "pause", "a", "--wait");
  expect(exitCode).toBe(0);
  return err.trimEnd().split("\n");
}

test("a time that a server computes anew for each answer is told once", async () => {
  const answers = [0, 1, 0, -1, 1].map((jitter) => ({
    inEffect: false,
    effectiveTime: new Date(UNTIL_MS + jitter),
  }));
  const said = "every server has confirmed; callers may use what they hold until";
  expect(await linesOf(answers)).toEqual([`idmint: ${said} 2026-11-22T14:28:13.000Z`]);
});

test("a wait tells anew when it waits for another server, or for longer", async () => {
  const answers = [
    named("n1", UNTIL_MS),
    named("n1", UNTIL_MS + 1),
    named("n2", UNTIL_MS + 1),
    named("n2", UNTIL_MS + 60_000),
  ];
  const told = await linesOf(answers);
  expect(told.map((line) => /: (n\d) .* by .*T(.*)Z/.exec(line)?.slice(1))).toEqual([
    ["n1", "14:28:13.000"],
    ["n2", "14:28:13.001"],
    ["n2", "14:29:13.000"],
  ]);
});

test("a wait that would never end fails once every server has confirmed", async () => {
  const left = [named("n1", UNTIL_MS), { inEffect: false, heldForEver: true }];
  const play = {
    pauseTag: () => ({ tag: someTag("a"), ...CHANGE }),
    getTagEffect: () => ({ ...CHANGE, tag: someTag("a"), heldForEver: true, ...left.shift() }),
  };
  const { exitCode, err } = await against(play, "tag", "pause", "a", "--wait");
  expect(exitCode).toBe(1);
  expect(err).toContain("waiting for 1 of the servers: n1");
  expect(err).toContain("the change is made and every server has confirmed it, but Tinyid's");
});

test("Ctrl-C ends the wait, and says that the change is made", async () => {
  const controller = new AbortController();
  const { address, stop } = await playServer({
    pauseTag: () => ({ tag: someTag("a"), ...CHANGE }),
    getTagEffect: () => {
      controller.abort();
      return { ...CHANGE, tag: someTag("a"), inEffect: false };
    },
  });
  onTestFinished(stop);
  const args = ["tag", "pause", "a", "--wait", "--address", address];
  const { exitCode, err } = await idmint(args, { signal: controller.signal });
  expect(exitCode).toBe(130);
  expect(err).toContain("interrupted; the change is made, and only the wait for it has ended");
});

// What the pages about servers and workers show to copy, read by the real command line.
import fc from "fast-check";
import { expect, test } from "vitest";
import { forgetLine, trafficLine, weightLine } from "../../src/pages/nodes/cli-lines.ts";
import { figuresLine } from "../../src/pages/overview/cli-lines.ts";
import { tagsLine, workersLine } from "../../src/pages/workers/cli-lines.ts";
import { parsedLine } from "./tags/lines-support.ts";

const RUNS = 15;
/** Names of servers are their operators' own; a token of a process begins with any of its characters. */
const name = fc.oneof(
  fc.constantFrom("host-1:7600", "-x", "--help", "a b", "it's", "$(id)", "*", "a;b"),
  fc.stringMatching(/^[\w-]{22}$/),
);

test("lines about servers are read as they were meant", async () => {
  await fc.assert(
    fc.asyncProperty(name, fc.integer({ min: 0, max: 1_000 }), async (server, weight) => {
      for (const verb of ["drain", "undrain"] as const) {
        const read = await parsedLine(trafficLine(verb, server));
        expect(read).toMatchObject({ command: verb, args: [server] });
      }
      const weighed = await parsedLine(weightLine(server, weight));
      expect(weighed).toMatchObject({ command: "weight", args: [server, weight] });
      const forgotten = await parsedLine(forgetLine(server));
      expect(forgotten).toMatchObject({ command: "forget", args: [server], flags: { yes: true } });
    }),
    { numRuns: RUNS },
  );
});

test("the line of the overview asks for the same time", async () => {
  expect(await parsedLine(figuresLine(300))).toMatchObject({
    command: "figures",
    flags: { seconds: 300 },
  });
});

test("lines about workers are read as they were meant", async () => {
  expect(await parsedLine(workersLine("orders.eu"))).toMatchObject({
    command: "list",
    args: ["orders.eu"],
  });
  expect(await parsedLine(tagsLine("orders."))).toMatchObject({
    command: "list",
    flags: { prefix: "orders." },
  });
  expect((await parsedLine(tagsLine(""))).flags).not.toHaveProperty("prefix");
});

import { GetTagResponse, LedgerEntryKind, LookupIdResponse, LookupResult } from "@idmint/proto";
import { expect, test } from "vitest";
import { against } from "../../support.ts";

const TIME = new Date("2026-11-22T10:31:04.120Z");
const GRANT = {
  kind: LedgerEntryKind.GRANT,
  firstId: 4_001n,
  lastId: 104_000n,
  server: "node-2",
  nodeId: "x",
  time: TIME,
};
const CLIENT = {
  ...GRANT,
  kind: LedgerEntryKind.ALLOCATION,
  lastId: 5_000n,
  instance: "orders-7f\u001B[2J",
};

async function whoOf(answer: Parameters<typeof LookupIdResponse.fromPartial>[0]): Promise<string> {
  const play = {
    getTag: () =>
      GetTagResponse.fromPartial({ tag: { name: "orders", kind: { $case: "segment" } } }),
    lookupId: () => LookupIdResponse.fromPartial(answer),
  };
  return (await against(play, "id", "who", "orders", "4711")).out;
}

test("an id's client is told with its segment, its server and its time, and its name cannot move the cursor", async () => {
  const result = LookupResult.ALLOCATED;
  const who = "orders-7f\\u001b[2J";
  const rest = "at 2026-11-22T10:31:04.120Z from node-2, in a segment of 1000 (4001 to 5000)\n";
  expect(await whoOf({ result, server: GRANT, client: CLIENT })).toBe(
    `SDK instance ${who} ${rest}`,
  );
  const proved = { ...CLIENT, instance: "", principal: "payments" };
  expect(await whoOf({ result, server: GRANT, client: proved })).toBe(
    `a client without a name of principal payments ${rest}`,
  );
});

test("where nobody is known it is said why", async () => {
  const granted = await whoOf({ result: LookupResult.GRANTED, server: GRANT });
  expect(granted).toBe(`node-2 at 2026-11-22T10:31:04.120Z, in a segment of 100000 (4001 to 104000)
It was issued by that server itself, or was not issued yet, or the client's row was lost.
`);
  expect(await whoOf({ result: LookupResult.UNKNOWN })).toMatch(/^Not known: there is no row/);
  expect(await whoOf({ result: LookupResult.NOT_GRANTED })).toMatch(/^Nobody: /);
});

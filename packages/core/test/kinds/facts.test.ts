import { expect, test } from "vitest";
import {
  comesFrom,
  countsToFloor,
  isCounted,
  type KindName,
  specOf,
} from "../../src/kinds/table.ts";
import type { TagKind } from "../../src/kinds/table.ts";
import { hidingViolations } from "../../src/server/format/of-tag.ts";

/** What follows from the facts of each kind. */
const FACTS: Readonly<Record<KindName, string>> = {
  segment: "counted to the floor, may be hidden, in segments",
  sequence: "counted to the floor",
  redis_snowflake: "issues to the floor",
  ticket: "counted, may be hidden, in tickets",
  snowflake: "of leases",
  uuid: "",
  object_id: "",
};

function plainSettings(kind: KindName): TagKind {
  const context = {
    name: "t",
    ceiling: 1_000_000n,
    nowMs: 0,
    placement: undefined,
    violations: [],
  };
  return specOf({ kind }).settle({ kind }, context);
}

function whyNotHidden(kind: KindName): string | undefined {
  const [order] = specOf({ kind }).orders;
  const settings = { kind: plainSettings(kind), order, ceiling: 1_000_000n };
  return hidingViolations("f", settings, { keyId: 1, keyDigits: 1 })[0]?.description;
}

test.each(Object.entries(FACTS) as [KindName, string][])(
  "ids of kind %s are: %s",
  (kind, facts) => {
    const { issuesToFloor } = specOf({ kind });
    const found = [
      ...(isCounted({ kind })
        ? [countsToFloor({ kind }) ? "counted to the floor" : "counted"]
        : []),
      ...(issuesToFloor && !isCounted({ kind }) ? ["issues to the floor"] : []),
      ...(whyNotHidden(kind) === undefined ? ["may be hidden"] : []),
      ...(comesFrom({ kind }, "segments") ? ["in segments"] : []),
      ...(comesFrom({ kind }, "tickets") ? ["in tickets"] : []),
      ...(comesFrom({ kind }, "lease") ? ["of leases"] : []),
    ];
    expect(found.join(", ")).toBe(facts);
  },
);

test("who asks for unguessable ids of a kind that has none is told why", () => {
  expect(whyNotHidden("sequence")).toContain("kind sequence: its ids have an order");
  expect(whyNotHidden("uuid")).toContain("kind uuid: its ids are no numbers counted from 1");
});

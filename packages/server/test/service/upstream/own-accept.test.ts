import { IdmintError } from "@idmint/core";
import { expect, test } from "vitest";
import type { ServerEvent } from "../../../src/service/events.ts";
import { OwnAccept } from "../../../src/service/upstream/own-accept.ts";

function setUp(gap: bigint | undefined) {
  const accepts: { isWanted: () => boolean; done(): void; fail(error?: Error): void }[] = [];
  const events: ServerEvent[] = [];
  let accepted = 0;
  const own = new OwnAccept({
    accept: (_gap, isWanted) => {
      const { promise, resolve, reject } = Promise.withResolvers<{ tags: number }>();
      const fail = (error = new Error("another accept is under way")) => reject(error);
      accepts.push({ isWanted, done: () => resolve({ tags: 3 }), fail });
      return promise;
    },
    gap,
    onAccepted: () => accepted++,
    emit: (event) => events.push(event),
  });
  return { own, accepts, events, accepted: () => accepted };
}

const settled = async (): Promise<void> => {
  for (let i = 0; i < 10; i++) await Promise.resolve();
};

test("without epoch_gap nothing is accepted", () => {
  const { own, accepts } = setUp(undefined);
  own.needed("one");
  expect(accepts).toEqual([]);
});

test("a history is accepted once, when it was done, and one accept runs at a time", async () => {
  const { own, accepts, events, accepted } = setUp(5n);
  own.needed("one");
  own.needed("one");
  expect(accepts).toHaveLength(1);
  accepts[0]?.fail();
  await settled();
  own.needed("one");
  expect(accepts).toHaveLength(2);
  accepts[1]?.fail();
  await settled();
  own.needed("one");
  accepts[2]?.done();
  await settled();
  own.needed("one");
  expect(accepts).toHaveLength(3);
  expect(accepted()).toBe(1);
  expect(events.map(({ type }) => type)).toEqual(["own-accept-failed", "store-accepted"]);
  own.needed("two");
  expect(accepts).toHaveLength(4);
});

test("an accept that an operator has to decide on leaves the turn to the operator", async () => {
  const { own, accepts, events } = setUp(5n);
  own.needed("one");
  accepts[0]?.fail();
  await settled();
  own.needed("one");
  accepts[1]?.fail(new IdmintError("VALUE_OUT_OF_RANGE", "claims reach the end of a tag"));
  await settled();
  own.needed("one");
  expect(accepts).toHaveLength(2);
  // Both are told: the second one says what an operator has to do.
  expect(events.map(({ type }) => type)).toEqual(["own-accept-failed", "own-accept-failed"]);
  own.needed("two");
  expect(accepts).toHaveLength(3);
});

test("what somebody else accepted meanwhile is not wanted any more, and no failure", async () => {
  const { own, accepts, events } = setUp(5n);
  own.needed("one");
  expect(accepts[0]?.isWanted()).toBe(true);
  own.over();
  expect(accepts[0]?.isWanted()).toBe(false);
  accepts[0]?.fail();
  await settled();
  expect(events).toEqual([]);
});

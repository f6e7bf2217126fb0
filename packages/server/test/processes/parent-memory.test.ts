import { FakeTime } from "@idmint/testkit";
import { expect, test } from "vitest";
import type { ToParent } from "../../src/processes/messages.ts";
import { ParentMemory } from "../../src/processes/parent-memory.ts";
import { StorePins } from "../../src/store/pins/pin.ts";

/** A parent that answers each question with this id; undefined: it cannot keep one; `silent`: not at all. */
function parentOf(answer: string | undefined): {
  readonly memory: ParentMemory;
  readonly time: FakeTime;
  readonly told: ToParent[];
} {
  const time = new FakeTime();
  const told: ToParent[] = [];
  const memory: ParentMemory = new ParentMemory(async (message) => {
    told.push(message);
    if (message.type === "settle" && answer !== "silent") {
      queueMicrotask(() => memory.hear(message.number, answer));
    }
  }, time);
  return { memory, time, told };
}

test("a process believes the store that its parent settled on, and no other", async () => {
  const { memory, told } = parentOf("a");
  const pin = new StorePins(memory).of("");
  await expect(pin.believe("b")).rejects.toMatchObject({ metadata: { pinned: "a" } });
  await pin.believe("a");
  expect(told).toEqual([{ type: "settle", number: 1, place: "", storeId: "b" }]);
});

test("what the parent knew when the process began is not asked for", async () => {
  const { memory, told } = parentOf("silent");
  memory.known = { stores: new Map([["", "a"]]), present: "1", left: ["0"] };
  const pin = new StorePins(memory).of("");
  await pin.believe("a");
  await expect(pin.believe("b")).rejects.toMatchObject({ reason: "STORE_UNAVAILABLE" });
  expect(told).toEqual([]);
});

test.for([undefined, "silent"] as const)(
  "nothing is believed without the parent's answer (%s)",
  async (answer) => {
    const { memory, time } = parentOf(answer);
    const pin = new StorePins(memory).of("");
    const work = pin.believe("a");
    queueMicrotask(() => time.advance(10_000));
    await expect(work).rejects.toMatchObject({ reason: "STORE_UNAVAILABLE" });
    expect(pin.id).toBeUndefined();
  },
);

test("the parent is told each history once", async () => {
  const { memory, told } = parentOf("a");
  for (const incarnation of ["1", "1", "2"]) await memory.entered(incarnation);
  expect(told).toEqual([
    { type: "entered", incarnation: "1" },
    { type: "entered", incarnation: "2" },
  ]);
});

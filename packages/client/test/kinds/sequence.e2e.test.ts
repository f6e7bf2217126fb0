// Sequences through the SDK, against real servers on a real SQLite file.
import { PeriodUnit, SequenceKind } from "@idmint/proto";
import { expect, test } from "vitest";
import { createIdClient, type IdTag } from "../../src/index.ts";
import { RealFleet } from "../real-fleet.ts";
import { pause, reasonOf, refusal, thrown } from "../support.ts";

function sequence(value: Partial<SequenceKind> = {}) {
  return { kind: { $case: "sequence", value: { ...SequenceKind.create(), ...value } } } as const;
}

/** Tasks that await id after id: each must be above all that any of them had when it asked. */
class Ascent {
  readonly #seen = new Set<bigint>();
  #highest = 0n;

  get count(): number {
    return this.#seen.size;
  }

  async climb(tag: IdTag, count: number): Promise<void> {
    for (let i = 0; i < count; i++) {
      const before = this.#highest;
      const id = await tag.next({ deadlineMs: 10_000 });
      expect(id).toBeGreaterThan(before);
      expect(this.#seen.has(id)).toBe(false);
      this.#seen.add(id);
      if (id > this.#highest) this.#highest = id;
    }
  }
}

test("ids of two SDKs on two servers are in the order in which they were asked for", async () => {
  await using fleet = await RealFleet.start(2);
  await fleet.createTag("invoices", sequence());
  const [first = "", second = ""] = fleet.addresses;
  await using here = createIdClient({ address: first });
  await using there = createIdClient({ address: second });
  const ascent = new Ascent();
  await Promise.all(
    [here, there].flatMap((client) =>
      Array.from({ length: 16 }, () => ascent.climb(client.tag("invoices"), 25)),
    ),
  );
  expect(ascent.count).toBe(800);
  const tag = here.tag("invoices");
  expect(thrown(() => tag.nextSync()).reason).toBe("WRONG_KIND");
  expect(await reasonOf(tag.take(3))).toBe("WRONG_KIND");
  expect(await reasonOf(tag.warm())).toBe("WRONG_KIND");
  expect(await tag.nextNumber()).toBe(801);
  expect(await tag.nextString()).toBe("802");
});

test("the order holds while servers stop and start under an SDK", async () => {
  await using fleet = await RealFleet.start(2);
  await fleet.createTag("invoices", sequence());
  const [first, second] = fleet.addresses;
  await using client = createIdClient({ addresses: fleet.addresses });
  const ascent = new Ascent();
  const climb = async (): Promise<void> => {
    await Promise.all(Array.from({ length: 8 }, () => ascent.climb(client.tag("invoices"), 20)));
  };
  for (const address of [first, second]) {
    const climbing = climb();
    await fleet.stop(address!);
    await climbing;
    await fleet.startServer(address);
    await climb();
  }
  expect(ascent.count).toBe(4 * 160);
});

test("a sequence of days answers the day with each id", async () => {
  await using fleet = await RealFleet.start(1);
  const timeZone = "Asia/Shanghai";
  await fleet.createTag("invoices", sequence({ period: PeriodUnit.DAY, timeZone }));
  await using client = createIdClient({ addresses: fleet.addresses });
  const tag = client.tag("invoices");
  const dateThere = (): string => new Date().toLocaleDateString("sv-SE", { timeZone });
  const before = dateThere();
  const answers = await Promise.all([tag.nextPeriodId(), tag.nextPeriodId(), tag.nextPeriodId()]);
  for (const { period, id, text, endsAt } of answers) {
    expect([before, dateThere()]).toContain(period);
    expect(text).toBe(`${period.replaceAll("-", "")}-${id}`);
    expect(endsAt.toLocaleTimeString("en-GB", { timeZone })).toBe("00:00:00");
    expect(endsAt.getTime() - Date.now()).toBeLessThanOrEqual(86_400_000);
  }
  expect(new Set(answers.map(({ text }) => text)).size).toBe(3);
  const error = await refusal(tag.next());
  expect([error.reason, error.message.includes("nextPeriodId()")]).toEqual(["WRONG_KIND", true]);
});

test("a name that comes back as another kind is found out within the call", async () => {
  await using fleet = await RealFleet.start(1);
  await fleet.createTag("orders", sequence());
  await using client = createIdClient({ addresses: fleet.addresses });
  const tag = client.tag("orders");
  expect(await tag.next()).toBe(1n);
  await fleet.deleteTag("orders");
  await fleet.createTag("orders");
  // The server looks again within a second; until then it may still refuse.
  await pause(1_200);
  const id = await tag.next();
  expect(id).toBeGreaterThan(1n);
  await tag.warm();
  expect(tag.nextSync()).toBeGreaterThan(id);
});

// Serials with a machine number: processes that are killed and started again lease theirs, and no serial comes twice.
import { paymentSerial, SNOWFLAKE_PRESETS } from "@idmint/core";
import { Tag } from "@idmint/proto";
import { expect, test } from "vitest";
import type { FleetServer } from "../../../src/fleet/fleet.ts";
import { sqliteFile, startFleet } from "../../fleet-support.ts";

const TAG = "payments";
const LAYOUT = { ...SNOWFLAKE_PRESETS["41-10-12"], workerBits: 6 };
const COUNT = 200;
const ROUNDS = 10;

test("payment serials of three processes, one of which is killed again and again, are all different", async () => {
  const fleet = await startFleet({ servers: 3, storeUrl: `sqlite:${await sqliteFile()}` });
  const layout = { timeBits: 41, workerBits: 6, sequenceBits: 12 };
  const tag = Tag.create({
    name: TAG,
    kind: { $case: "snowflake", value: { layout } },
    format: { template: paymentSerial("101", LAYOUT) },
  });
  const { tags } = fleet.first.api;
  await fleet.first.api.send(tags.createTag.bind(tags), { tag, validateOnly: false });
  const serials: string[] = [];
  const machinesOf = new Map<string, Set<string>>();
  const take = async ({ name, api }: FleetServer): Promise<void> => {
    const { texts } = await api.generateIds({ tag: TAG, count: COUNT, asList: true });
    const machines = machinesOf.get(name) ?? new Set();
    for (const serial of texts) machines.add(serial.slice(20, 22));
    machinesOf.set(name, machines);
    serials.push(...texts);
  };
  const [victim] = fleet.servers;
  if (victim === undefined) throw new Error("no server");
  for (let round = 1; round <= ROUNDS; round++) {
    await Promise.all(fleet.servers.flatMap((server) => [take(server), take(server)]));
    if (round % 4 !== 0) continue;
    await victim.kill();
    await victim.start();
  }
  expect(serials).toHaveLength(ROUNDS * fleet.servers.length * 2 * COUNT);
  expect(serials.filter((serial) => !/^101\d{17}0[012]\d{4}$/.test(serial))).toEqual([]);
  expect(new Set(serials).size).toBe(serials.length);
  // One machine number each, through all its processes.
  const machines = [...machinesOf.values()].map((each) => [...each]);
  expect(machines.flat().toSorted()).toEqual(["00", "01", "02"]);
});

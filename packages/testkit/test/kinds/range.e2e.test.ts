import { IdmintError, createIdClient, idsOf } from "@idmint/client";
import { GenerateIdResponse, GenerateIdsResponse } from "@idmint/proto";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { runCli } from "../../src/fleet/child.ts";
import { Fleet } from "../../src/fleet/fleet.ts";
import { sqliteFile } from "../fleet-support.ts";

const MAX_ID = 2n ** 63n - 1n;
const MAX_SAFE = 2n ** 53n - 1n;

let fleet: Fleet;

beforeAll(async () => {
  fleet = await Fleet.start({ servers: 1, storeUrl: `sqlite:${await sqliteFile()}` });
});

afterAll(async () => {
  await fleet?.close();
});

async function reasonOf(work: Promise<unknown>): Promise<string> {
  try {
    return `fulfilled with ${String(await work)}`;
  } catch (thrown) {
    return thrown instanceof IdmintError ? `${thrown.code} ${thrown.reason}` : String(thrown);
  }
}

/** The ids `first` to `last`. */
function range(first: bigint, last: bigint): bigint[] {
  return Array.from({ length: Number(last - first + 1n) }, (_, at) => first + BigInt(at));
}

// The tag's name, its first id and its last: 50 ids below a border where something overflows.
const BORDERS = [
  ["int32", 2n ** 31n - 50n, 2n ** 31n - 1n],
  ["js", 2n ** 53n - 50n, MAX_SAFE],
  ["past-js", 2n ** 53n - 25n, 2n ** 53n + 24n],
  ["int64", 2n ** 63n - 50n, MAX_ID],
] as const;

test.for(BORDERS)(
  "tag %s: gRPC, JSON and the CLI tell the ids up to the last one exactly, then OUT_OF_RANGE",
  async ([border, first, last]) => {
    const name = `${border}-wire`;
    const { api, address } = fleet.first;
    await api.createTag({ name, start: first, ceiling: last });
    const expected = range(first, last);
    const ids: bigint[] = [];
    ids.push(await api.id(name));
    const one = GenerateIdResponse.toJSON({
      ...GenerateIdResponse.create(),
      id: await api.id(name),
    });
    expect(one).toMatchObject({ id: String(expected[1]) });
    ids.push(BigInt((one as { id: string }).id));
    const list = await api.generateIds({ tag: name, count: 10, asList: true });
    ids.push(...list.ids);
    expect(GenerateIdsResponse.toJSON(list)).toMatchObject({
      ids: expected.slice(2, 12).map(String),
    });
    const block = await api.generateIds({ tag: name, count: 10, asList: false });
    ids.push(...idsOf(block.segments));
    expect(GenerateIdsResponse.toJSON(block)).toMatchObject({
      segments: [{ base: String(expected[12]), increment: 1, count: 10 }],
    });
    const cli = (...args: string[]) => runCli(["id", "next", name, "--address", address, ...args]);
    const text = await cli("--count", "10");
    expect(text).toMatchObject({ code: 0, stdout: `${expected.slice(22, 32).join("\n")}\n` });
    ids.push(...expected.slice(22, 32));
    const json = await cli("--count", "10", "--json");
    expect(JSON.parse(json.stdout)).toEqual({ tag: name, ids: expected.slice(32, 42).map(String) });
    ids.push(...expected.slice(32, 42));
    // Eight are left: a call for more takes none of them.
    expect(await reasonOf(api.generateIds({ tag: name, count: 9, asList: true }))).toBe(
      "OUT_OF_RANGE TAG_EXHAUSTED",
    );
    ids.push(...(await api.generateIds({ tag: name, count: 8, asList: true })).ids);
    expect(ids).toEqual(expected);
    for (let again = 0; again < 2; again++) {
      expect(await reasonOf(api.id(name))).toBe("OUT_OF_RANGE TAG_EXHAUSTED");
    }
    expect(await cli()).toMatchObject({ code: 1, stdout: "" });
    expect((await api.getTag(name)).floor).toBe(last);
  },
);

test.for(BORDERS)(
  "tag %s: the SDK tells the ids up to the last one exactly in each of its forms, then OUT_OF_RANGE",
  async ([border, first, last]) => {
    const name = `${border}-sdk`;
    await fleet.first.api.createTag({ name, start: first, ceiling: last });
    const client = createIdClient({ address: fleet.first.address, min: 20, max: 20 });
    onTestFinished(() => client.close());
    const tag = client.tag(name);
    // A synchronous call cannot wait for the load that the one before it began.
    const sync = async <T>(call: () => T): Promise<T> => {
      await tag.warm();
      return call();
    };
    const expected = range(first, last);
    const calls = [
      async () => tag.next(),
      async () => BigInt(await tag.nextString()),
      () => sync(() => tag.nextSync()),
      () => sync(() => BigInt(tag.nextStringSync())),
      async () => [...idsOf(await tag.take(1))][0],
      async () => {
        // Refused past 2^53 − 1, and then the id is nobody else's.
        try {
          return BigInt(await tag.nextNumber());
        } catch (thrown) {
          expect(thrown).toMatchObject({ code: "OUT_OF_RANGE", reason: "UNSAFE_INTEGER" });
          return BigInt((thrown as IdmintError).metadata["id"] ?? -1);
        }
      },
    ];
    let at = 0;
    for (const id of expected) {
      if (id > MAX_SAFE) {
        // Issues nothing, and says so every time.
        for (let again = 0; again < 2; again++) {
          const call = (): number => tag.nextNumberSync();
          await sync(() => expect(call).toThrow("UNSAFE_INTEGER"));
        }
      } else if (at % 7 === 6) {
        expect(await sync(() => BigInt(tag.nextNumberSync()))).toBe(id);
        at++;
        continue;
      }
      expect(await calls[at % calls.length]!()).toBe(id);
      at++;
    }
    expect(await reasonOf(tag.next())).toBe("OUT_OF_RANGE TAG_EXHAUSTED");
    expect(await reasonOf(tag.take(1))).toBe("OUT_OF_RANGE TAG_EXHAUSTED");
    expect(() => tag.nextSync()).toThrow("TAG_EXHAUSTED");
  },
);

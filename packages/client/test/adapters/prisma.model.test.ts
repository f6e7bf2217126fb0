// NO ID IN TWO RECORDS, and none in what is no new record: arbitrary nested writes against the models of a schema.
import fc from "fast-check";
import { expect, test } from "vitest";
import { mintIds } from "../../src/adapters/prisma.ts";
import { createTestIdClient } from "../../src/testing.ts";

type Data = Record<string, unknown>;
interface Operation {
  readonly model: string;
  readonly operation: string;
  readonly args: Data;
  readonly query: (args: Data) => Promise<unknown>;
}

const scalar = (name: string, type: string): Data => ({ name, kind: "scalar", type });
const relation = (name: string, type: string): Data => ({ name, kind: "object", type });
const fields = [scalar("id", "BigInt"), scalar("mark", "String"), relation("json", "Unknown")];
const MODELS = {
  A: { fields: [...fields, relation("bs", "B")] },
  B: { fields: [...fields, relation("a", "A"), scalar("data", "Json"), relation("cs", "C")] },
  C: { fields: [...fields, relation("b", "B")] },
};
const RELATIONS = { A: { bs: "B" }, B: { a: "A", cs: "C" }, C: { b: "B" } } as const;
type Model = keyof typeof RELATIONS;

/** What the extension hands on to Prisma. */
async function extended(model: Model, operation: string, args: Data): Promise<Data> {
  let handler: ((call: Operation) => Promise<unknown>) | undefined;
  const prisma = {
    _runtimeDataModel: { models: MODELS },
    $extends(extension: never): void {
      const { query } = extension as {
        query: { $allModels: { $allOperations: typeof handler } };
      };
      handler = query.$allModels.$allOperations;
    },
  };
  mintIds(prisma, createTestIdClient({ start: 1_000_000n }), { A: "ids", B: "ids", C: "ids" });
  return (await handler?.({ model, operation, args, query: async (its) => its })) as Data;
}

const WHERE = fc.constant({ where: { id: 7n, mark: "where" } });
const oneOrMore = (one: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> =>
  fc.oneof(one, fc.array(one, { maxLength: 3 }));

/** A record that is made, marked as such, sometimes with an id of the caller's. */
function made(model: Model, depth: number): fc.Arbitrary<Data> {
  const id = fc.option(fc.bigInt(1n, 999n), { nil: undefined });
  return fc
    .tuple(id, changes(model, depth, "new"))
    .map(([given, data]) => (given === undefined ? data : { ...data, id: given }));
}

/** Fields of a record, with what is written to records related to it. */
function changes(model: Model, depth: number, mark: string): fc.Arbitrary<Data> {
  const its: Record<string, fc.Arbitrary<unknown>> = {
    mark: fc.constant(mark),
    json: fc.constant({ create: { mark: "old" } }),
  };
  if (depth > 0) {
    for (const [name, to] of Object.entries(RELATIONS[model])) its[name] = writes(to, depth - 1);
  }
  return fc.record(its, { requiredKeys: ["mark"] });
}

function writes(model: Model, depth: number): fc.Arbitrary<Data> {
  const wrapped = fc.tuple(WHERE, changes(model, depth, "old"));
  return fc.record(
    {
      create: oneOrMore(made(model, depth)),
      createMany: fc.record({ data: oneOrMore(made(model, 0)) }),
      connect: fc.constant({ id: 5n, mark: "old" }),
      connectOrCreate: oneOrMore(
        fc.tuple(WHERE, made(model, depth)).map(([where, create]) => ({ ...where, create })),
      ),
      upsert: oneOrMore(
        fc
          .tuple(WHERE, made(model, depth), changes(model, depth, "old"))
          .map(([where, create, update]) => ({ ...where, create, update })),
      ),
      update: fc.oneof(
        oneOrMore(wrapped.map(([where, data]) => ({ ...where, data }))),
        changes(model, depth, "old"),
      ),
      delete: fc.constant({ mark: "old" }),
    },
    { requiredKeys: [] },
  );
}

const model = fc.constantFrom<Model>("A", "B", "C");
const operation: fc.Arbitrary<readonly [Model, string, Data]> = model.chain((its) =>
  fc.oneof(
    made(its, 2).map((data) => [its, "create", { data }] as const),
    oneOrMore(made(its, 0)).map((data) => [its, "createMany", { data }] as const),
    changes(its, 2, "old").map(
      (data) => [its, "update", { where: { mark: "old" }, data }] as const,
    ),
    fc
      .tuple(made(its, 2), changes(its, 2, "old"))
      .map(([create, update]) => [its, "upsert", { create, update }] as const),
    fc.constant([its, "findMany", { where: { mark: "old" } }] as const),
  ),
);

/** All objects in a value that have a mark. */
function marked(value: unknown): readonly Data[] {
  if (typeof value !== "object" || value === null) return [];
  const below = Object.values(value).flatMap(marked);
  return "mark" in value ? [value, ...below] : below;
}

const isMinted = (id: unknown): boolean => typeof id === "bigint" && id >= 1_000_000n;

test("every new record gets an id of its own, or keeps what it was given; nothing else changes", async () => {
  await fc.assert(
    fc.asyncProperty(operation, async ([its, name, args]) => {
      const before = structuredClone(args);
      const after = await extended(its, name, args);
      expect(args).toEqual(before);
      const [old, now] = [marked(before), marked(after)];
      const ids = now.filter(({ mark }) => mark === "new").map(({ id }) => id);
      expect(ids.every((id) => typeof id === "bigint")).toBe(true);
      const minted = ids.filter(isMinted);
      expect(new Set(minted).size).toBe(minted.length);
      // Without what was minted it is what the caller wrote.
      const rest = structuredClone(after);
      for (const one of marked(rest))
        if (one["mark"] === "new" && isMinted(one["id"])) delete one["id"];
      expect(rest).toEqual(before);
      expect(now.length).toBe(old.length);
    }),
    { numRuns: 100 },
  );
});

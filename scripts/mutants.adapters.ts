import type { Mutant } from "./mutant.ts";

const adapters = "packages/client/src/adapters";
const test = (name: string): readonly string[] => [`packages/client/test/adapters/${name}.test.ts`];

/** Faults of what adapts the SDK to ORMs and frameworks. */
export const adapterMutants: readonly Mutant[] = [
  {
    name: "adapters: Drizzle's refusal of a cold tag does not say the way out",
    file: `${adapters}/drizzle.ts`,
    find: `          throw withWayOut(name, thrown);`,
    replace: `          throw thrown;`,
    tests: test("drizzle.e2e"),
  },
  {
    name: "adapters: Drizzle waits for the first tag only",
    file: `${adapters}/drizzle.ts`,
    find: `[...tags].map((tag)`,
    replace: `[...tags].slice(0, 1).map((tag)`,
    tests: test("drizzle.e2e"),
  },
  {
    name: "adapters: Drizzle's numbers lose their last digits",
    file: `${adapters}/drizzle.ts`,
    find: `tag.nextNumberSync()`,
    replace: `Number(tag.nextSync())`,
    tests: test("drizzle.e2e"),
  },
  {
    name: "adapters: Prisma's records that are made or connected get no id",
    file: `${adapters}/prisma.ts`,
    find: `return { ...(one as Data), create };`,
    replace: `return { ...(one as Data), create: (one as Data)["create"] ?? create };`,
    tests: test("prisma.model"),
  },
  {
    name: "adapters: Prisma's caller finds ids in his own objects, and inserts them again",
    file: `${adapters}/prisma.ts`,
    find: `    const copy: Record<string, unknown> = { ...writes };`,
    replace: `    const copy = writes as Record<string, unknown>;`,
    tests: test("prisma.model"),
  },
  {
    name: "adapters: Prisma's records lose the ids that they were given",
    file: `${adapters}/prisma.ts`,
    find: ` || copy[column.field] !== undefined) return copy;`,
    replace: `) return copy;`,
    tests: test("prisma.model"),
  },
  {
    name: "adapters: Prisma's records in a list share an id",
    file: `${adapters}/prisma.ts`,
    find: `value.slice(from, from + CHUNK).map(to)`,
    replace: `value.slice(from, from + CHUNK).fill(value[from]).map(to)`,
    tests: test("prisma.model"),
  },
  {
    name: "adapters: TypeORM's entities lose the ids that they were given",
    file: `${adapters}/typeorm.ts`,
    find: ` || (entity[column.field] ?? undefined) !== undefined) return;`,
    replace: `) return;`,
    tests: test("typeorm.e2e"),
  },
  {
    name: "adapters: TypeORM may read ids as numbers",
    file: `${adapters}/typeorm.ts`,
    find: `if (Reflect.get(db.options, "parseInt8") === true) {`,
    replace: `if (Reflect.get(db.options, "parseInt8") === "yes") {`,
    tests: test("typeorm.e2e"),
  },
  {
    name: "adapters: TypeORM's keys may be bigint, whose relations it cannot load",
    file: `${adapters}/typeorm.ts`,
    find: `if (transformer !== undefined) {`,
    replace: `if (transformer === null) {`,
    tests: test("typeorm.e2e"),
  },
  {
    name: "adapters: Fastify closes the client before the last request",
    file: `${adapters}/fastify.ts`,
    find: `app.addHook("onClose", () =>`,
    replace: `app.addHook("preClose", () =>`,
    tests: test("fastify.e2e"),
  },
  {
    name: "adapters: NestJS closes the client before the application's own providers end",
    file: `${adapters}/nestjs.ts`,
    find: `  onApplicationShutdown(): Promise<void> {`,
    replace: `  onModuleDestroy(): Promise<void> {`,
    tests: test("nestjs.e2e"),
  },
  {
    name: "adapters: a paused tag is ready",
    file: `${adapters}/readiness.ts`,
    find: `return [tag, IdmintError.from(thrown).reason, false];`,
    replace: `return [tag, IdmintError.from(thrown).reason, true];`,
    tests: test("fastify.e2e"),
  },
];

import "../node-version.ts";
import { IdmintError } from "@idmint/core";
import type { IdClient } from "../api.ts";
import { idColumns, type IdColumn, type IdForm, type IdSources } from "./columns.ts";

export type { IdSourceOfModel, IdSources } from "./columns.ts";

/** What is used of a Prisma client. */
export interface ExtensiblePrisma {
  $extends(extension: never): unknown;
}

/** How many ids are asked for at once. */
const CHUNK = 1_000;

/**
 * A Prisma client that sets the ids of new records: in create, createMany, createManyAndReturn and upsert, and in all writes
 * nested in them and in update. An id that the caller gives is kept. Throws INVALID_ARGUMENT when a model or field is not
 * there.
 *
 * The result has no `$on`, like every extended client of Prisma.
 */
export function mintIds<P extends ExtensiblePrisma>(
  prisma: P,
  client: IdClient,
  sources: IdSources,
): Omit<P, "$on"> {
  const models = modelsOf(prisma);
  const columns = idColumns(client, sources, (model, field) => formOf(models, model, field));
  const filler = new Filler(models, columns);
  const extension = {
    name: "idmint",
    query: {
      $allModels: {
        $allOperations: async ({ model, operation, args, query }: Operation): Promise<unknown> =>
          query(await filler.args(model, operation, args ?? {})),
      },
    },
  };
  return prisma.$extends(extension as never) as Omit<P, "$on">;
}

interface Operation {
  readonly model: string;
  readonly operation: string;
  readonly args: Data;
  readonly query: (args: Data) => Promise<unknown>;
}

type Data = Readonly<Record<string, unknown>>;

interface Field {
  readonly name: string;
  readonly kind: string;
  readonly type: string;
}

type Models = Readonly<Record<string, { readonly fields: readonly Field[] }>>;

/** Prisma tells extensions the relations between models in no other way. */
function modelsOf(prisma: object): Models {
  const model = Reflect.get(prisma, "_runtimeDataModel") as { models?: Models } | undefined;
  if (model?.models !== undefined) return model.models;
  const text = "this version of @prisma/client does not tell its models; @idmint/client needs 7";
  throw new IdmintError("NOT_CONFIGURED", text);
}

const FORMS: Readonly<Record<string, IdForm>> = {
  BigInt: "bigint",
  Int: "number",
  String: "string",
};

function formOf(models: Models, model: string, name: string): IdForm | { fault: string } {
  const known = models[model];
  if (known === undefined) {
    return { fault: `is unknown: the models are ${Object.keys(models).join(", ")}` };
  }
  const field = known.fields.find((each) => each.name === name);
  if (field === undefined) return { fault: "is not a field of the model" };
  return FORMS[field.type] ?? { fault: `must be BigInt, String or Int, and is ${field.type}` };
}

/**
 * Copies the arguments of an operation and sets the ids that are missing.
 *
 * NO ID IN TWO RECORDS. Every record of the copy that has no id gets one of its own, and the caller's objects stay as they
 * were: whoever uses them again gets other ids.
 */
class Filler {
  readonly #models: Models;
  readonly #columns: ReadonlyMap<string, IdColumn>;

  constructor(models: Models, columns: ReadonlyMap<string, IdColumn>) {
    this.#models = models;
    this.#columns = columns;
  }

  async args(model: string, operation: string, args: Data): Promise<Data> {
    switch (operation) {
      case "create":
        return { ...args, data: await this.#record(model, args["data"] ?? {}) };
      case "createMany":
      case "createManyAndReturn":
        return { ...args, data: await this.#each(args["data"], (one) => this.#record(model, one)) };
      case "update":
        return { ...args, data: await this.#changes(model, args["data"]) };
      case "upsert":
        return this.#upsert(model, args);
      default:
        return args;
    }
  }

  /** A record that is made. */
  async #record(model: string, data: unknown): Promise<unknown> {
    const copy = await this.#changes(model, data);
    const column = this.#columns.get(model);
    if (column === undefined || !isData(copy) || copy[column.field] !== undefined) return copy;
    return { ...copy, [column.field]: await column.next() };
  }

  /** Fields of a record, with what is written to records related to it. */
  async #changes(model: string, data: unknown): Promise<unknown> {
    if (!isData(data)) return data;
    const copy: Record<string, unknown> = { ...data };
    for (const { name, kind, type } of this.#models[model]?.fields ?? []) {
      const writes = copy[name];
      if (kind === "object" && isData(writes)) copy[name] = await this.#nested(type, writes);
    }
    return copy;
  }

  async #nested(model: string, writes: Data): Promise<Data> {
    const copy: Record<string, unknown> = { ...writes };
    const change = async (name: string, to: (one: unknown) => Promise<unknown>): Promise<void> => {
      if (copy[name] !== undefined) copy[name] = await this.#each(copy[name], to);
    };
    await change("create", (one) => this.#record(model, one));
    await change("createMany", async (many) => this.args(model, "createMany", many as Data));
    await change("connectOrCreate", async (one) => {
      const create = await this.#record(model, (one as Data)["create"]);
      return { ...(one as Data), create };
    });
    await change("upsert", (one) => this.#upsert(model, one as Data));
    await change("update", async (one) => {
      // Of a single record: its fields, or where and data.
      const isWrapped =
        isData(one) && isData(one["data"]) && ("where" in one || !this.#hasField(model, "data"));
      return isWrapped ? this.args(model, "update", one) : this.#changes(model, one);
    });
    return copy;
  }

  async #upsert(model: string, args: Data): Promise<Data> {
    const create = await this.#record(model, args["create"]);
    return { ...args, create, update: await this.#changes(model, args["update"]) };
  }

  #hasField(model: string, name: string): boolean {
    return this.#models[model]?.fields.some((field) => field.name === name) === true;
  }

  /** One, or a list of them. */
  async #each(value: unknown, to: (one: unknown) => Promise<unknown>): Promise<unknown> {
    if (!Array.isArray(value)) return to(value);
    const all: unknown[] = [];
    for (let from = 0; from < value.length; from += CHUNK) {
      all.push(...(await Promise.all(value.slice(from, from + CHUNK).map(to))));
    }
    return all;
  }
}

function isData(value: unknown): value is Data {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

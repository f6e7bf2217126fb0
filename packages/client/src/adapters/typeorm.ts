import "../node-version.ts";
import { IdmintError } from "@idmint/core";
import type { DataSource, EntityMetadata, EntitySubscriberInterface } from "typeorm";
import type { IdClient } from "../api.ts";
import { idColumns, type IdForm, type IdSources } from "./columns.ts";

export type { IdSourceOfModel, IdSources } from "./columns.ts";

/**
 * From now on, sets the ids of new entities: in `save`, `insert`, `upsert` and the insert of a query builder. An id that the
 * caller gives is kept. Call it once after `initialize`. Throws INVALID_ARGUMENT when an entity or property is not there, or
 * cannot hold ids.
 *
 * Ids are text, also those of bigint columns: TypeORM reads these as text, and cannot load relations of keys that are bigint.
 */
export function mintIds(db: DataSource, client: IdClient, sources: IdSources): void {
  if (!db.isInitialized) {
    throw new IdmintError("NOT_CONFIGURED", "call mintIds after `await db.initialize()`");
  }
  const columns = idColumns(client, sources, (entity, property) => formOf(db, entity, property));
  const subscriber: EntitySubscriberInterface<Record<string, unknown>> = {
    async beforeInsert({ entity, metadata }) {
      const column = columns.get(metadata.name);
      if (column === undefined || (entity[column.field] ?? undefined) !== undefined) return;
      entity[column.field] = await column.next();
    },
  };
  db.subscribers.push(subscriber);
}

const BIG = new Set(["bigint", "int8"]);
const TEXT = new Set(["char", "character varying", "text", "uuid", "varchar"]);

function formOf(db: DataSource, name: string, property: string): IdForm | { fault: string } {
  const entities: readonly EntityMetadata[] = db.entityMetadatas;
  const entity = entities.find((each) => each.name === name);
  if (entity === undefined) {
    return {
      fault: `is unknown: the entities are ${entities.map((each) => each.name).join(", ")}`,
    };
  }
  const column = entity.findColumnWithPropertyName(property);
  if (column === undefined) return { fault: "is not a column of the entity" };
  const { isGenerated, transformer, type } = column;
  if (isGenerated) return { fault: "gets its values from the database; use @PrimaryColumn" };
  if (transformer !== undefined) {
    return { fault: "must have no transformer: TypeORM keeps keys of bigint columns as text" };
  }
  const normal = db.driver.normalizeType({ type });
  if (TEXT.has(normal)) return "string";
  if (!BIG.has(normal)) return { fault: `must be bigint or text, and is ${normal}` };
  if (Reflect.get(db.options, "parseInt8") === true) {
    return { fault: "loses digits when it is read: leave out the option parseInt8" };
  }
  return "decimal";
}

// What the Helm chart takes from tables of the code: its version, and the options of the server in the schema of its values.
import { readFileSync } from "node:fs";
import path from "node:path";
import type { Option } from "../packages/server/src/config/option.ts";
import { OPTIONS } from "../packages/server/src/config/table.ts";
import { root } from "./lib.ts";

type Schema = { [key: string]: unknown };

/** Set by the chart itself, from other values. */
const OWN: ReadonlySet<string> = new Set([
  "config",
  "grpc.address",
  "admin.address",
  "http.address",
  "instance",
  "node.advertise",
  "node.zone",
  "snowflake.data_center",
  "snowflake.cache_file",
  "drain_delay",
  "drain_time",
]);
/** A URL holds no password, but whoever takes it for a secret may keep it in one. */
const MAY_BE_SECRET: ReadonlySet<string> = new Set([
  "store.url",
  "store.more_urls",
  "redis.urls",
  "ticket.urls",
]);
const KEY_FILES = "unguessable.keys";
/** Helm reads numbers as floating-point ones. */
const MAX_EXACT = Number.MAX_SAFE_INTEGER;
const SECRET_KEY = { $ref: "#/definitions/secretKey" };

const options = Object.values<Option<unknown>>(OPTIONS).filter(({ key }) => !OWN.has(key));
const isFile = ({ key, type }: Option<unknown>): boolean =>
  type.placeholder === "path" || key === KEY_FILES;

const isSecret = ({ key, isSecret: is }: Option<unknown>): boolean =>
  is === true || MAY_BE_SECRET.has(key);

function secretSchema({ text: description }: Option<unknown>): Schema {
  return { description, ...SECRET_KEY };
}

function plainSchema({ type, text }: Option<unknown>): Schema {
  const description = `${text} Must be ${type.accepts}.`;
  const { placeholder } = type;
  if (placeholder === "") return { description, type: "boolean" };
  if (placeholder === "n") return { description, type: ["integer", "string"], maximum: MAX_EXACT };
  if (placeholder === "share") return { description, type: ["number", "string"] };
  if (type.accepts.startsWith("one of ")) return { description, enum: placeholder.split("|") };
  return { description, type: "string" };
}

function fileSchema({ key, text: description }: Option<unknown>): Schema {
  if (key !== KEY_FILES) return { description, ...SECRET_KEY };
  const propertyNames = { pattern: "^[1-9][0-9]{0,2}$" };
  return { description, type: "object", propertyNames, additionalProperties: SECRET_KEY };
}

/** One level for each dot in the names. */
function tree(
  description: string,
  chosen: readonly Option<unknown>[],
  schemaOf: (option: Option<unknown>) => Schema,
): Schema {
  const top: Schema = {};
  const levels = Object.groupBy(chosen, ({ key }) => key.split(".", 1)[0] ?? "");
  for (const [name, members = []] of Object.entries(levels)) {
    const self = members.find(({ key }) => key === name);
    const below = members.filter((option) => option !== self);
    const level = objectOf(
      `Options ${name}.….`,
      Object.fromEntries(
        below.map((option) => [option.key.slice(name.length + 1), schemaOf(option)]),
      ),
    );
    // As in the server's file, `ledger` is a word or a level, and not both.
    const own = self === undefined ? level : schemaOf(self);
    top[name] =
      self === undefined || below.length === 0
        ? own
        : { anyOf: [own, level], description: self.text };
  }
  return objectOf(description, top);
}

function objectOf(description: string, properties: Schema): Schema {
  return { description, type: "object", additionalProperties: false, properties };
}

interface Values {
  readonly properties: Schema & { readonly migration: { readonly properties: Schema } };
}

function withOptions(text: string): string {
  const schema = JSON.parse(text) as Values;
  const secrets = options.filter(isSecret);
  schema.properties["config"] = tree(
    "Options of the server, with a level for each dot in their names. A word such as on or off must be quoted.",
    options.filter((option) => option.isSecret !== true && !isFile(option)),
    plainSchema,
  );
  schema.properties["secrets"] = tree(
    "Options of the server whose values are keys of Secrets.",
    secrets,
    secretSchema,
  );
  schema.properties["files"] = tree(
    "Options of the server that name files, which are keys of Secrets.",
    options.filter(isFile),
    fileSchema,
  );
  schema.properties.migration.properties["secrets"] = tree(
    "Other Secrets for options of the store, where the owner of the schema is not the role that serves.",
    secrets.filter(({ key }) => /^(?:store|ticket)\./.test(key)),
    secretSchema,
  );
  return `${JSON.stringify(schema, undefined, 2)}\n`;
}

function withVersion(text: string): string {
  const manifest = readFileSync(path.join(root, "packages/cli/package.json"), "utf8");
  const { version } = JSON.parse(manifest) as { version: string };
  return text.replaceAll(/^(version|appVersion): .*$/gm, `$1: ${version}`);
}

/** The files, by their paths in the repository, as they must be. */
export function chartFiles(): readonly (readonly [file: string, text: string])[] {
  const changes = [
    ["values.schema.json", withOptions],
    ["Chart.yaml", withVersion],
  ] as const;
  return changes.map(([name, change]) => {
    const file = path.join("deploy/helm/idmint", name);
    return [file, change(readFileSync(path.join(root, file), "utf8"))];
  });
}

import { invalidField, paymentSerial } from "@idmint/core";
import { type KindName, specOf } from "@idmint/core/kinds";
import { Order, Tag, type UpdateTagRequest } from "@idmint/proto";
import { settingsOfProto } from "@idmint/server/kind-values";
import { type Command, Option } from "commander";
import { assertOfKind, type KindFlags, kindFrom, kindOptions, kindPaths } from "./kind-flags.ts";
import { KIND_WORDS } from "./kind-words.ts";
import { ceiling, oneOf, smallNumber } from "./parse.ts";

const ORDERS: Readonly<Record<string, Order>> = {
  unordered: Order.UNORDERED,
  "per-client": Order.PER_CLIENT,
  strict: Order.STRICT,
};

/** The settings of a tag as typed; undefined when not given. */
export interface TagFlags extends KindFlags {
  readonly kind?: KindName;
  readonly ceiling?: bigint;
  readonly order?: Order;
  readonly description?: string;
  readonly format?: string;
  readonly paymentSerial?: string;
  readonly keyId?: number;
  readonly keyDigits?: number;
}

/**
 * Adds the flags of a tag's settings. `isNew` adds those that cannot be changed later. The defaults are the server's.
 */
export function addTagFlags(command: Command, { isNew }: { isNew: boolean }): Command {
  // The wire cannot tell 0 from "not given", so 0 is refused here unless it is the default. The server judges which
  // settings fit together.
  const kind = new Option(
    "--kind <kind>",
    `how ids are made: ${Object.keys(KIND_WORDS).join(", ").replace("segment", "segment (default)")}`,
  ).argParser(oneOf("--kind", KIND_WORDS));
  const options = [
    ...(isNew ? [kind] : []),
    new Option("--description <text>", "what the ids are for"),
    new Option(
      "--order <order>",
      "unordered, per-client or strict (default: the first that the kind has)",
    ).argParser(oneOf("--order", ORDERS)),
    new Option(
      "--ceiling <id>",
      "highest id: a number, int32 (2^31−1), js (2^53−1) or int64 (2^63−1, the default)",
    ).argParser(ceiling("--ceiling")),
    ...kindOptions({ isNew }),
    ...(isNew ? [formatOption(), paymentSerialOption(), keyDigitsOption()] : []),
    new Option(
      "--key-id <number>",
      "make unguessable ids with the servers' key of this number",
    ).argParser(smallNumber("--key-id", { min: 1, max: 999 })),
  ];
  for (const option of options) command.addOption(option);
  return command;
}

/** The tag that `tag create` asks for. Throws INVALID_ARGUMENT for a flag of another kind. */
export function newTag(name: string, flags: TagFlags): Tag {
  const kind = flags.kind ?? "segment";
  assertOfKind(flags, kind);
  const { keyId, keyDigits } = flags;
  if (keyId === undefined && keyDigits !== undefined)
    throw invalidField("--key-digits", "needs --key-id: without a key ids have no digits of it");
  const settings = kindFrom(kind, flags);
  const template = templateOf(flags, settings);
  return {
    ...commonOf(name, flags),
    kind: settings,
    format: template === undefined ? undefined : { template },
    unguessable: keyId === undefined ? undefined : { keyId, keyDigits: keyDigits ?? 0 },
  };
}

function formatOption(): Option {
  return new Option("--format <template>", "write ids as text, such as 'INV{id:8}{luhn}'");
}

function paymentSerialOption(): Option {
  return new Option(
    "--payment-serial <business>",
    "snowflake: write ids as payment serials: business number, time to the millisecond, machine, counter",
  ).conflicts("format");
}

/** The format that flags ask for: a template, or the one of payment serials for the layout. */
function templateOf(flags: TagFlags, kind: Tag["kind"]): string | undefined {
  const { format, paymentSerial: business } = flags;
  if (business === undefined) return format;
  const settings = kind === undefined ? undefined : settingsOfProto(kind);
  const composed = settings === undefined ? undefined : specOf(settings).composed;
  if (settings === undefined || composed?.isShown !== true) {
    const why = "only ids of kind snowflake hold time, machine and counter";
    throw invalidField("--payment-serial", `needs --kind snowflake: ${why}`);
  }
  return paymentSerial(business, composed.layout(settings), "--payment-serial");
}

function keyDigitsOption(): Option {
  return new Option(
    "--key-digits <count>",
    "digits in front of unguessable ids for the number of the key, 1 (default) to 3",
  ).argParser(smallNumber("--key-digits", { min: 1, max: 3 }));
}

/**
 * The tag and the mask that `tag update` sends. Both have only what was given, so nothing else is changed. `kind` is
 * the kind that its flags are for; undefined when none of them is for a kind.
 */
export function tagUpdate(
  name: string,
  flags: TagFlags,
  { kind, etag }: { kind: KindName | undefined; etag: string | undefined },
): UpdateTagRequest & { readonly updateMask: string[] } {
  const common = (["description", "order", "ceiling"] as const).filter(
    (field) => flags[field] !== undefined,
  );
  const { keyId } = flags;
  const unguessable = keyId === undefined ? undefined : { keyId, keyDigits: 0 };
  const tag = { ...commonOf(name, flags), etag: etag ?? "", unguessable };
  const paths = [...common, ...(keyId === undefined ? [] : ["unguessable.key_id"])];
  if (kind === undefined) return { tag, updateMask: paths, validateOnly: false };
  const updateMask = [...paths, ...kindPaths(flags, kind)];
  return { tag: { ...tag, kind: kindFrom(kind, flags) }, updateMask, validateOnly: false };
}

function commonOf(name: string, flags: TagFlags): Tag {
  return {
    ...Tag.create(),
    name,
    description: flags.description ?? "",
    order: flags.order ?? Order.UNSPECIFIED,
    ceiling: flags.ceiling ?? 0n,
  };
}

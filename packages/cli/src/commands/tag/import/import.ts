import { readFileSync, statSync } from "node:fs";
import { type FieldViolation, IdmintError, invalidField, MAX_ID } from "@idmint/core";
import { Tag } from "@idmint/proto";
import { type Command, Option } from "commander";
import { type Send, withServer } from "../../../calls/connection.ts";
import { CommandFailure, failureFrom } from "../../../calls/failure.ts";
import { ceiling, oneWord, wholeNumber } from "../../../flags/parse.ts";
import { EXIT } from "../../../process/exit-code.ts";
import type { Io } from "../../../process/io.ts";
import { countsToFloor } from "../../../text/kind-text.ts";
import { examplesText, printAnswer } from "../../../text/output.ts";
import { plain } from "../../../process/plain.ts";
import { columns } from "../../../text/table.ts";
import { confirm, serverPlace } from "../../confirm.ts";
import { type Target, targetsOf } from "./plan.ts";
import { type Count, countsOfDump, sequenceCount, type SourceName, SOURCES } from "./sources.ts";

interface ImportFlags {
  readonly gap: bigint;
  readonly dryRun?: boolean;
  readonly only?: readonly string[];
  readonly name?: readonly string[];
  readonly ceiling?: bigint;
  readonly allowLargeRaise?: boolean;
}

/** A dump is read as a whole; a string of V8 holds no more than twice of this. */
const MAX_DUMP_BYTES = 256 * 1_048_576;

const NAMES = Object.keys(SOURCES) as SourceName[];

/** `idmint tag import`: tags that go on above what another maker of ids has given out. */
export function addImport(group: Command, io: Io): void {
  const command = group
    .command("import")
    .description("make tags that go on above the ids of Leaf, Tinyid, MySQL or PostgreSQL")
    .argument("<source>", `one of ${NAMES.join(", ")}`, oneWord("SOURCE", NAMES))
    .argument("<place...>", "files of dumps; of postgres also postgres://user@host/database")
    .addOption(
      new Option(
        "--gap <ids>",
        "ids that the source may have given out since; 0 once it is stopped",
      )
        .argParser(wholeNumber("--gap", { min: 0n, max: MAX_ID }))
        .makeOptionMandatory(),
    )
    .addOption(new Option("--dry-run", "check everything, show what would be done, change nothing"))
    .addOption(new Option("--only <name...>", "only these tags, tables or sequences of the source"))
    .addOption(new Option("--name <old=new...>", "names of tags for names of the source"))
    .addOption(
      new Option(
        "--ceiling <id|type>",
        "ceiling of the tags that are made: an id, int32, js or int64",
      ).argParser(ceiling("--ceiling")),
    )
    .addOption(new Option("--allow-large-raise", "allow raises by more than 1000000000000"))
    .addHelpText(
      "after",
      `
Each tag gets a floor: the highest id that the source may have given out, and the gap. A tag that is there already is
raised to it, or left as it is when it is above. So a second run changes nothing. docs/migrating.md has the steps.
${examplesText([
  "idmint tag import leaf leaf_alloc.sql --gap 100000 --dry-run",
  "idmint tag import tinyid db1.sql db2.sql --gap 0 --yes",
  "idmint tag import mysql shop.sql --only orders --gap 0 --yes",
  "idmint tag import postgres postgres://shop@db.internal/shop --gap 1000 --name orders_id_seq=orders --yes",
])}`,
    );
  command.action(async (source: SourceName, places: readonly string[], flags: ImportFlags) => {
    const options = { gap: flags.gap, names: namesOf(flags.name ?? []), only: flags.only ?? [] };
    const targets = targetsOf(await countsOf(source, places, io), options);
    await withServer(command, io, async (send) => {
      // Everything is checked by the server before anything is changed.
      const planned = await planAll(send, targets, flags);
      const changes = planned.filter(({ action }) => action !== "keep").length;
      const isDry = flags.dryRun === true;
      if (changes > 0 && !isDry) {
        const effect = `makes or raises ${changes} tags`;
        await confirm(command, io, { place: serverPlace(command, io), effect });
        for (const { target, action } of planned) {
          if (action !== "keep") await change(send, target, action, flags, false);
        }
      }
      await printAnswer(command, io, {
        json: () => ({ dryRun: isDry, tags: planned.map(plannedJson) }),
        text: () => reportText(planned),
      });
      if (isDry) io.err("idmint: dry run, nothing was changed\n");
    });
  });
}

function namesOf(pairs: readonly string[]): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (const pair of pairs) {
    const at = pair.lastIndexOf("=");
    if (at < 1) throw invalidField("--name", `must be OLD=NEW, got "${pair}"`);
    names.set(pair.slice(0, at), pair.slice(at + 1));
  }
  return names;
}

async function countsOf(
  source: SourceName,
  places: readonly string[],
  io: Io,
): Promise<readonly Count[]> {
  const counts: Count[] = [];
  for (const place of places) {
    counts.push(...(await countsAt(source, place, io)));
  }
  return counts;
}

async function countsAt(source: SourceName, place: string, io: Io): Promise<readonly Count[]> {
  if (!/^\w+:\/\//.test(place)) return countsOfDump(source, dumpText(place), place);
  if (source !== "postgres") {
    throw invalidField("PLACE", `must be a dump: only postgres is read from a database`);
  }
  const { readSequences } = await import("@idmint/server");
  const password = io.env["IDMINT_IMPORT_PASSWORD"];
  return (await readSequences(place, password)).map(sequenceCount);
}

function dumpText(file: string): string {
  try {
    if (statSync(file).size > MAX_DUMP_BYTES) {
      throw invalidField(
        file,
        "is larger than 256 MiB: dump only the tables that count (mysqldump DATABASE leaf_alloc, mysqldump --no-data, pg_dump -t '*_seq')",
      );
    }
    return readFileSync(file, "utf8");
  } catch (cause) {
    if (cause instanceof IdmintError) throw cause;
    const why = cause instanceof Error && "code" in cause ? String(cause.code) : "unreadable";
    throw invalidField("PLACE", `names a file that cannot be read (${why}): ${file}`);
  }
}

type Action = "create" | "raise" | "keep";

interface Planned {
  readonly target: Target;
  readonly action: Action;
  /** The floor that the tag had; undefined: there was none. */
  readonly before: bigint | undefined;
}

/** What becomes of each tag. Throws an INVALID_ARGUMENT with all that the server would refuse. */
async function planAll(
  send: Send,
  targets: readonly Target[],
  flags: ImportFlags,
): Promise<readonly Planned[]> {
  const planned: Planned[] = [];
  const violations: FieldViolation[] = [];
  for (const target of targets) {
    try {
      planned.push(await plan(send, target, flags));
    } catch (thrown) {
      const failure = failureFrom(thrown);
      // Of a server that is away, or a fault of ours, the tag is not to blame.
      if (failure === undefined || failure.exitCode === EXIT.unavailable) throw thrown;
      if (failure.stack !== undefined) throw thrown;
      violations.push({ field: target.tag, description: failure.message });
    }
  }
  if (violations.length === 0) return planned;
  const lines = violations.map(({ field, description }) => `${field}: ${description}`);
  throw new IdmintError("INVALID_ARGUMENT", `nothing was changed\n${lines.join("\n")}`, {
    violations,
  });
}

async function plan(send: Send, target: Target, flags: ImportFlags): Promise<Planned> {
  const tag = await tagOf(send, target.tag);
  const before = tag?.floor;
  if (before !== undefined && before >= target.floor) return { target, action: "keep", before };
  const action = tag === undefined ? "create" : "raise";
  await change(send, target, action, flags, true);
  return { target, action, before };
}

/** Undefined: there is none. Refuses one whose floor is not that of all its ids. */
async function tagOf(send: Send, name: string): Promise<Tag | undefined> {
  let tag: Tag | undefined;
  try {
    ({ tag } = await send(({ tags }) => tags.getTag.bind(tags), { name }));
  } catch (thrown) {
    if (thrown instanceof CommandFailure && thrown.failure.exitCode === EXIT.notFound)
      return undefined;
    throw thrown;
  }
  if (tag !== undefined && countsToFloor(tag) && tag.period === "") return tag;
  throw invalidField(
    name,
    "is the name of a tag whose ids are not one row of numbers: choose another name with --name",
  );
}

async function change(
  send: Send,
  { tag: name, floor }: Target,
  action: Action,
  { ceiling: highest, allowLargeRaise = false }: ImportFlags,
  validateOnly: boolean,
): Promise<void> {
  if (action === "raise") {
    const request = { name, floor, allowLargeRaise, etag: "", validateOnly };
    await send(({ tags }) => tags.advanceTag.bind(tags), request);
    return;
  }
  // Made with its floor, so that nobody gets an id below it in between.
  const value = { start: floor + 1n };
  const tag = Tag.fromPartial({
    name,
    kind: { $case: "segment", value },
    ...(highest === undefined ? {} : { ceiling: highest }),
  });
  await send(({ tags }) => tags.createTag.bind(tags), { tag, validateOnly });
}

const DONE: Readonly<Record<Action, string>> = {
  create: "made",
  raise: "raised",
  keep: "kept",
};

function reportText(planned: readonly Planned[]): string {
  const rows = planned.map(({ target: { tag, highest, floor, because }, action, before }) => [
    plain(tag),
    String(highest),
    String(action === "keep" ? (before ?? floor) : floor),
    action === "raise" ? `${DONE[action]} from ${before}` : DONE[action],
    because,
  ]);
  return columns([["tag", "highest of the source", "floor", "what is done", "why"], ...rows]);
}

function plannedJson({ target, action, before }: Planned): unknown {
  const { tag, highest, floor, because } = target;
  return {
    tag,
    highest: String(highest),
    floor: String(floor),
    action,
    before: before === undefined ? null : String(before),
    because,
  };
}

import { invalidField } from "@idmint/core";
import type { KindName } from "@idmint/core/kinds";
import type { Tag } from "@idmint/proto";
import { kindNameOf } from "@idmint/server/kind-values";
import { type Command, Option } from "commander";
import { confirm, serverPlace } from "../confirm.ts";
import { type Send, withServer } from "../../calls/connection.ts";
import { plain } from "../../process/plain.ts";
import type { Io } from "../../process/io.ts";
import { kindMeant } from "../../flags/kind-flags.ts";
import { addConnectionOptions } from "../../flags/options.ts";
import { printAnswer } from "../../text/output.ts";
import { addPageOptions, listPages, type PageFlags, tellOfMore } from "../../calls/paging.ts";
import { id } from "../../flags/parse.ts";
import { planJson, planText } from "../../text/plan-text.ts";
import { addTagFlags, newTag, type TagFlags, tagUpdate } from "../../flags/tag-flags.ts";
import { tagJson, tagTable } from "../../text/tag-text.ts";
import { addCapacity } from "./tag-capacity.ts";
import { addImport } from "./import/import.ts";
import { addMove, addPeriods, addReturnToPeriod } from "./tag-kinds.ts";
import { type EtagFlag, leaf, named, printTag, withEtag } from "./tag-parts.ts";
import { awaited, type WaitFlag, withWait } from "./tag-wait.ts";

const MAX_LISTED = 100_000;

/** `idmint tag …`: the calls of TagService. */
export function addTagCommands(program: Command, io: Io): void {
  const group = program
    .command("tag")
    .description("create and manage tags, the named id spaces")
    .helpCommand(false);
  addCreate(group, io);
  addList(group, io);
  addGet(group, io);
  addCapacity(group, io);
  addUpdate(group, io);
  addPause(group, io);
  addResume(group, io);
  addAdvance(group, io);
  addImport(group, io);
  addPeriods(group, io);
  addReturnToPeriod(group, io);
  addMove(group, io);
  addDelete(group, io);
  addConnectionOptions(group);
}

function addCreate(group: Command, io: Io): void {
  const command = named(
    leaf(
      group,
      "create",
      "create a tag; creating it again with the same settings changes nothing",
      [
        "idmint tag create orders",
        "idmint tag create invoices --start 1000000 --ceiling js --order per-client",
        "idmint tag create events --min 10000 --hold-for 30m --description 'one per event'",
        "idmint tag create invoice --kind sequence --period day --time-zone Asia/Shanghai",
        "idmint tag create jobs --kind sequence --backend redis",
        "idmint tag create messages --kind redis-snowflake --shard 60",
        "idmint tag create coupons --kind ticket",
        "idmint tag create invoices --ceiling 99999999 --format 'INV{id:8}{luhn}'",
        "idmint tag create codes --ceiling 99999999 --key-id 1",
        "idmint tag create sessions --kind uuid --version 7",
        "idmint tag create trace --kind snowflake --layout 41-10-12 --dry-run",
      ],
    ),
  );
  addTagFlags(command, { isNew: true }).addOption(
    new Option(
      "--dry-run",
      "show layout, life, room and examples; asks no server and creates nothing",
    ),
  );
  command.action(async (name: string, flags: TagFlags & { readonly dryRun?: boolean }) => {
    const request = { tag: newTag(name, flags), validateOnly: false };
    if (flags.dryRun === true) {
      await printPlan(command, io, request.tag);
      return;
    }
    await withServer(command, io, async (send) => {
      await printTag(command, io, await send(({ tags }) => tags.createTag.bind(tags), request));
    });
  });
}

/** Prints the plan of a tag by the servers' rules, without a server. What only a server knows is taken for granted. */
async function printPlan(command: Command, io: Io, wanted: Tag): Promise<void> {
  const { plannedTag } = await import("@idmint/server");
  const plan = plannedTag(wanted);
  const nowMs = Date.now();
  await printAnswer(command, io, {
    json: () => planJson(plan, nowMs),
    text: () => planText(plan, nowMs),
  });
  io.err("idmint: dry run, no server was asked and nothing was created\n");
}

interface ListFlags extends PageFlags {
  readonly prefix?: string;
  readonly showDeleted?: boolean;
}

function addList(group: Command, io: Io): void {
  const command = leaf(group, "list", "list tags by name", [
    "idmint tag list",
    "idmint tag list --prefix shop. --show-deleted",
    "idmint tag list --json | jq -r '.tags[].name'",
  ])
    .addOption(new Option("--prefix <text>", "only tags whose names start with this"))
    .addOption(new Option("--show-deleted", "include deleted tags"));
  const goOn = "continue where a list ended, with the same flags";
  addPageOptions(command, "tags", { max: MAX_LISTED, goOn });
  command.action(async ({ prefix = "", showDeleted = false, ...flags }: ListFlags) => {
    await withServer(command, io, async (send) => {
      const unreachable: string[] = [];
      const { items: tags, nextPageToken } = await listPages(flags, async (page) => {
        const request = { ...page, prefix, showDeleted };
        const answer = await send(
          (services) => services.tags.listTags.bind(services.tags),
          request,
        );
        unreachable.push(...answer.unreachable);
        return { items: answer.tags, nextPageToken: answer.nextPageToken };
      });
      await printAnswer(command, io, {
        json: () => ({ tags: tags.map(tagJson), unreachable, nextPageToken }),
        text: () => tagTable(tags),
      });
      if (unreachable.length > 0) {
        const names = plain(unreachable.join(", "));
        io.err(`idmint: these tags cannot be read, and "idmint tag get" says why: ${names}\n`);
      }
      tellOfMore(io, "tags", nextPageToken);
    });
  });
}

function addGet(group: Command, io: Io): void {
  const command = named(
    leaf(group, "get", "show one tag", [
      "idmint tag get orders",
      "idmint tag get orders --json | jq -r .tag.floor",
    ]),
  );
  command.action(async (name: string) => {
    await withServer(command, io, async (send) => {
      await printTag(command, io, await send(({ tags }) => tags.getTag.bind(tags), { name }));
    });
  });
}

function addUpdate(group: Command, io: Io): void {
  const command = withEtag(
    named(
      leaf(group, "update", "change settings of a tag; the others stay as they are", [
        "idmint tag update orders --hold-for 30m --max 10000000",
        "idmint tag update orders --description 'ids of orders' --etag r3",
        "idmint tag update invoice --keep-for 800d",
      ]),
    ),
  );
  addTagFlags(command, { isNew: false }).action(
    async (name: string, flags: TagFlags & EtagFlag) => {
      const meant = kindMeant(flags);
      await withServer(command, io, async (send) => {
        const kind = meant === "any" ? await kindOfTag(send, name) : meant;
        const request = tagUpdate(name, flags, { kind, etag: flags.etag });
        if (request.updateMask.length === 0) {
          throw invalidField(
            "update",
            "needs at least one setting to change, such as --hold-for 30m",
          );
        }
        await printTag(command, io, await send(({ tags }) => tags.updateTag.bind(tags), request));
      });
    },
  );
}

/** The kind of a tag. Flags that several kinds have change the field of the tag's own kind. */
async function kindOfTag(send: Send, name: string): Promise<KindName | undefined> {
  const { tag } = await send(({ tags }) => tags.getTag.bind(tags), { name });
  return tag?.kind === undefined ? undefined : kindNameOf(tag.kind);
}

function addPause(group: Command, io: Io): void {
  const command = withWait(
    withEtag(
      named(
        leaf(group, "pause", "stop issuing ids of a tag until it is resumed", [
          "idmint tag pause orders",
          "idmint tag pause orders --wait",
        ]),
      ),
    ),
  );
  command.action(async (name: string, { etag = "", ...flags }: EtagFlag & WaitFlag) => {
    await withServer(command, io, async (send) => {
      const request = { name, etag, validateOnly: false };
      const answer = await send(({ tags }) => tags.pauseTag.bind(tags), request);
      await printTag(command, io, await awaited(io, send, answer, flags));
    });
  });
}

function addResume(group: Command, io: Io): void {
  const command = withEtag(
    named(leaf(group, "resume", "let a paused tag issue ids again", ["idmint tag resume orders"])),
  );
  command.action(async (name: string, { etag = "" }: EtagFlag) => {
    await withServer(command, io, async (send) => {
      const request = { name, etag, validateOnly: false };
      await printTag(command, io, await send(({ tags }) => tags.resumeTag.bind(tags), request));
    });
  });
}

interface AdvanceFlags extends EtagFlag, WaitFlag {
  readonly floor: bigint;
  readonly dryRun?: boolean;
  readonly allowLargeRaise?: boolean;
}

function addAdvance(group: Command, io: Io): void {
  const command = withEtag(
    named(
      leaf(
        group,
        "advance",
        "raise the floor of a tag, so that every later id is larger; a floor never goes down",
        [
          "idmint tag advance orders --floor 5000000 --dry-run",
          "idmint tag advance orders --floor 5000000 --yes --wait",
        ],
      ),
    ),
  )
    .addOption(
      new Option("--floor <id>", "the highest id that the older source may have issued")
        .argParser(id("--floor"))
        .makeOptionMandatory(),
    )
    .addOption(new Option("--dry-run", "check everything and change nothing"))
    .addOption(new Option("--allow-large-raise", "allow a raise by more than 1000000000000"));
  withWait(command);
  command.action(async (name: string, flags: AdvanceFlags) => {
    const request = {
      name,
      floor: flags.floor,
      validateOnly: flags.dryRun ?? false,
      allowLargeRaise: flags.allowLargeRaise ?? false,
      etag: flags.etag ?? "",
    };
    if (!request.validateOnly) {
      const effect = `raises the floor of tag "${name}" to ${flags.floor}`;
      await confirm(command, io, { place: serverPlace(command, io), effect });
    }
    await withServer(command, io, async (send) => {
      const answer = await send(({ tags }) => tags.advanceTag.bind(tags), request);
      const wait = flags.wait === true && !request.validateOnly;
      await printTag(command, io, await awaited(io, send, answer, { wait }), {
        raised: answer.raised,
      });
      if (request.validateOnly) io.err("idmint: dry run, nothing was changed\n");
    });
  });
}

function addDelete(group: Command, io: Io): void {
  const command = withEtag(
    named(
      leaf(
        group,
        "delete",
        "delete a tag; a tombstone keeps its floor, so that no id is ever repeated",
        ["idmint tag delete orders --yes", "idmint tag delete orders --yes --wait"],
      ),
    ),
  );
  withWait(command);
  command.action(async (name: string, flags: EtagFlag & WaitFlag) => {
    const effect = `deletes tag "${name}", so that every caller of it is refused`;
    await confirm(command, io, { place: serverPlace(command, io), effect });
    await withServer(command, io, async (send) => {
      const request = { name, etag: flags.etag ?? "", validateOnly: false };
      const answer = await send(({ tags }) => tags.deleteTag.bind(tags), request);
      await printTag(command, io, await awaited(io, send, answer, flags));
    });
  });
}

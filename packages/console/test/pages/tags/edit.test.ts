// Editing a tag: what a change sends, and what happens when somebody else was faster.
import { KIND_NAMES, type KindName } from "@idmint/core/kinds";
import { Tag } from "@idmint/proto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { newTag, tagUpdate } from "../../../../cli/src/flags/tag-flags.ts";
import { protoJson } from "../../../../cli/src/text/proto-json.ts";
import { plannedTag } from "../../../../server/src/main/planned.ts";
import {
  changedPaths,
  differences,
  editFields,
  onTopOf,
  updateOf,
} from "../../../src/pages/tags/model/changes.ts";
import { camelCase, draftOf, tagJson } from "../../../src/pages/tags/model/draft.ts";
import type { FormValues } from "../../../src/pages/tags/model/fields.ts";
import { actionLine, updateLine } from "../../../src/pages/tags/model/lines.ts";
import { formOfTag, kindOf, type TagJson } from "../../../src/pages/tags/model/tag-values.ts";
import { parsedLine } from "./lines-support.ts";

/** A tag as a server answers it. */
function answered(flags: Parameters<typeof newTag>[1], change: Partial<TagJson> = {}): TagJson {
  const { tag } = plannedTag(newTag("t", flags));
  return { ...(protoJson(Tag, tag) as unknown as TagJson), etag: "r3", ...change };
}

const PLAIN: Readonly<Record<KindName, TagJson>> = {
  segment: answered({}),
  sequence: answered({ kind: "sequence" }),
  redis_snowflake: answered({ kind: "redis_snowflake" }),
  ticket: answered({ kind: "ticket" }),
  snowflake: answered({ kind: "snowflake" }),
  uuid: answered({ kind: "uuid", version: 7 }),
  object_id: answered({ kind: "object_id" }),
};

test.each(KIND_NAMES)("kind %s: a form of a tag asks for the tag as it is", (kind) => {
  const tag = PLAIN[kind];
  expect(kindOf(tag)).toBe(kind);
  const form = formOfTag(tag, kind);
  const { faults, kind: settings } = draftOf(kind, form);
  expect([...faults]).toEqual([]);
  const json = tagJson("t", draftOf(kind, form));
  const again = plannedTag(newTag("t", kind === "uuid" ? { kind, version: 7 } : { kind })).tag.kind;
  expect(settings.kind).toBe(kind);
  // What the form sends is what the tag has, where anything is sent.
  const sent = Object.values(json).find((value) => typeof value === "object") ?? {};
  expect(protoJson(Tag, { ...Tag.create(), kind: again! })).toMatchObject(
    Object.fromEntries(Object.entries(json).filter(([, value]) => value === sent)),
  );
});

test("a tag of a kind that this console does not know has none", () => {
  const { segment: _, ...rest } = PLAIN.segment;
  expect(kindOf(rest as TagJson)).toBeUndefined();
});

function why(tag: TagJson, kind: KindName): Record<string, unknown> {
  return Object.fromEntries(editFields(tag, kind).map((field) => [field.path, field.why]));
}

test("fields that never change are fixed, others with the first id, and all of them with a format", () => {
  const fresh = why(PLAIN.segment, "segment");
  expect(fresh).toMatchObject({ "segment.start": undefined, "format.template": "never" });
  expect(fresh["unguessable.key_id"]).toBe("never");
  const used = why({ ...PLAIN.segment, version: "1" }, "segment");
  expect(used).toMatchObject({
    "segment.start": "issued",
    "segment.min": undefined,
    order: "issued",
  });
  expect(used["ceiling"]).toBe("issued");
  const written = why(answered({ format: "A{id:19}" }), "segment");
  expect(written).toMatchObject({
    "segment.start": "written",
    ceiling: "written",
    description: undefined,
  });
  // Nobody tells the store of the ids of a ticket tag.
  expect(why(PLAIN.ticket, "ticket")["ceiling"]).toBe("issued");
  expect(why(PLAIN.snowflake, "snowflake")).not.toHaveProperty("snowflake.allow_short_life");
});

test("the mask names what was changed, and nothing else", () => {
  const base = formOfTag(PLAIN.segment, "segment");
  const mine = { ...base, "segment.hold_for": "30m", description: "for <b>you</b>" };
  expect(updateOf(PLAIN.segment, "segment", { base, mine })).toEqual({
    tag: { name: "t", etag: "r3", description: "for <b>you</b>", segment: { holdFor: "1800s" } },
    updateMask: "description,segment.holdFor",
  });
});

test("an emptied field asks for its default", () => {
  const base = formOfTag(PLAIN.segment, "segment");
  const mine = { ...base, "segment.hold_for": "", description: "" };
  const was = { ...base, description: "old" };
  expect(updateOf(PLAIN.segment, "segment", { base: was, mine })).toEqual({
    tag: { name: "t", etag: "r3", description: "", segment: {} },
    updateMask: "description,segment.holdFor",
  });
  expect(updateLine(PLAIN.segment, "segment", { base, mine })).toBe(
    "idmint tag update t --hold-for 15m --etag r3",
  );
});

test("of a layout the whole is sent", () => {
  const base = formOfTag(PLAIN.snowflake, "snowflake");
  const mine = { ...base, "snowflake.layout.worker_bits": "8" };
  const { tag, updateMask } = updateOf(PLAIN.snowflake, "snowflake", { base, mine });
  expect(updateMask).toBe("snowflake.layout");
  expect(tag["snowflake"]).toMatchObject({
    layout: { timeBits: 41, workerBits: 8, sequenceBits: 12 },
  });
  expect(updateLine(PLAIN.snowflake, "snowflake", { base, mine })).toBeUndefined();
});

/** The kinds whose tags have something that may change at any time, with texts to type. */
const TUNING: Readonly<Partial<Record<KindName, FormValues>>> = {
  segment: {
    "segment.min": "5",
    "segment.max": "70",
    "segment.max_age": "90s",
    description: "it's -- new",
  },
  sequence: {
    "sequence.start": "7",
    "sequence.period": "WEEK",
    "sequence.time_zone": "Asia/Tokyo",
  },
  snowflake: { "snowflake.clock_policy": "BACKUP_WORKER", "snowflake.clock_wait": "7ms" },
};

test.each(Object.keys(TUNING) as KindName[])(
  "kind %s: the line changes what the form changes",
  async (kind) => {
    const typed = TUNING[kind] ?? {};
    await fc.assert(
      fc.asyncProperty(fc.subarray(Object.keys(typed), { minLength: 1 }), async (paths) => {
        const tag = PLAIN[kind];
        const base = formOfTag(tag, kind);
        const mine = {
          ...base,
          ...Object.fromEntries(paths.map((path) => [path, typed[path] ?? ""])),
        };
        const sent = updateOf(tag, kind, { base, mine });
        const { command, args, flags } = await parsedLine(
          updateLine(tag, kind, { base, mine }) ?? "",
        );
        expect([command, ...args]).toEqual(["update", "t"]);
        const isOwn = paths.some((path) => path.startsWith(kind));
        const options = { kind: isOwn ? kind : undefined, etag: flags["etag"] as string };
        const request = tagUpdate("t", flags, options);
        expect(request.updateMask.map(camelCase).toSorted()).toEqual(
          sent.updateMask.split(",").toSorted(),
        );
        expect(protoJson(Tag, request.tag!)).toMatchObject(
          isOwn ? sent.tag : { name: "t", etag: "r3" },
        );
      }),
      { numRuns: 15 },
    );
  },
);

test("somebody else was faster: what each of us changed, and mine on top of theirs", () => {
  const base = formOfTag(PLAIN.segment, "segment");
  const mine = { ...base, description: "mine", "segment.min": "10" };
  const theirs = { ...base, description: "theirs", "segment.max": "99" };
  expect(differences(base, mine, theirs)).toEqual([
    { path: "description", base: "", mine: "mine", theirs: "theirs", isContested: true },
    { path: "segment.min", base: "1000", mine: "10", theirs: "1000", isContested: false },
    { path: "segment.max", base: "100000000", mine: "100000000", theirs: "99", isContested: false },
  ]);
  const next = onTopOf(base, mine, theirs);
  expect(next).toMatchObject({ description: "mine", "segment.min": "10", "segment.max": "99" });
  const { updateMask } = updateOf({ name: "t", etag: "r4" }, "segment", {
    base: theirs,
    mine: next,
  });
  expect(updateMask.split(",").toSorted()).toEqual(["description", "segment.min"]);
});

test("on top of theirs nothing of theirs is lost, and nothing of mine", () => {
  const some = fc.dictionary(fc.constantFrom("a", "b", "c"), fc.constantFrom("", "1", "2"));
  fc.assert(
    fc.property(some, some, some, (base, mine, theirs) => {
      const next = onTopOf(base, mine, theirs);
      const changed = new Set(changedPaths(base, mine));
      for (const path of ["a", "b", "c"]) {
        const from = changed.has(path) ? mine : theirs;
        expect(next[path] ?? "").toBe(from[path] ?? "");
      }
    }),
  );
});

test("the lines of actions are what the command line knows", async () => {
  const all = {
    pause: { etag: "r3", wait: true },
    resume: { etag: "r3" },
    advance: {
      floor: "5000000000000000001",
      etag: "r3",
      "allow-large-raise": true,
      yes: true,
      wait: true,
    },
    delete: { etag: "r3", yes: true, wait: true },
    "return-to-period": { period: "2026-W47", floor: "0", etag: "r3", yes: true },
    move: { to: "b", force: true, etag: "r3" },
  } as const;
  for (const [action, flags] of Object.entries(all)) {
    // One after the other, since each is a program of its own.
    const parsed = await parsedLine(actionLine(action as keyof typeof all, "shop:orders", flags));
    expect(parsed.command).toBe(action);
    expect(parsed.args).toEqual(["shop:orders"]);
    expect(parsed.flags["etag"]).toBe("r3");
  }
  const advance = await parsedLine(actionLine("advance", "t", all.advance));
  expect(advance.flags["floor"]).toBe(5_000_000_000_000_000_001n);
});

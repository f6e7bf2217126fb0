import {
  assertNoViolations,
  type FieldViolation,
  IdmintError,
  invalidField,
  invalidFields,
  MAX_ID,
  tagNameViolation,
} from "@idmint/core";
import {
  type AuditNote,
  type ChangeOptions,
  type EndedPeriod,
  MAX_RAISE,
  namesOn,
  periodName,
  periodsOf,
  type PeriodStore,
  storeWentBack,
  type Tag,
  tagNotFound,
  type TagPage,
  type TagSettings,
  type TagState,
  type TagStore,
  upTo,
} from "@idmint/core/server";
import { comesFrom, hasPlace, inPlaceOf, type PeriodUnit } from "@idmint/core/kinds";
import type { AdminGate } from "../admin-gate.ts";
import type { Directory } from "../issue/directory.ts";
import type { TextPorts } from "../issue/tag-text.ts";
import { decodePageToken, encodePageToken, pageLimitOf, pageSizeViolation } from "../page-token.ts";
import { NO_EFFECT, type TagEffect, type TagEffects } from "./effects.ts";
import { etagMismatch, etagOf, expectedRevision } from "./etag.ts";
import { periodStart } from "./period-start.ts";
import type { Placement } from "./placement.ts";
import { settingsOf, type TagDraft } from "./settings.ts";
import { changeOf, maskViolations } from "./update-mask.ts";

const FIRST_DAY = /^\d{4}-\d{2}-\d{2}$/;
/** How often an update without an etag is tried again when somebody else was faster. */
const MAX_UPDATE_TRIES = 5;

/** A tag after a change, and by when nobody issues any more what the change has ended. */
export interface Changed {
  readonly tag: Tag;
  readonly effect: TagEffect;
}

/** A change of a tag by its name. */
export interface NamedChange {
  readonly name: string;
  /** Empty: no check. */
  readonly etag: string;
  readonly validateOnly: boolean;
  /** Who makes it, for the audit trail. */
  readonly by?: AuditNote | undefined;
}

/** A page of ended periods, newest first. */
export interface PeriodPage {
  readonly unit: PeriodUnit;
  readonly periods: readonly EndedPeriod[];
  readonly nextPageToken: string;
}

/** Makes and manages tags. What is changed here holds on this server at once, elsewhere within a second. */
export class TagService {
  readonly #store: TagStore & PeriodStore;
  readonly #placement: Placement;
  readonly #directory: Directory;
  readonly #gate: AdminGate;
  readonly #texts: TextPorts;
  readonly #wallClock: () => number;
  readonly #announce: () => void;
  readonly #effects: TagEffects;

  constructor(ports: {
    store: TagStore & PeriodStore;
    placement: Placement;
    directory: Directory;
    gate: AdminGate;
    texts: TextPorts;
    wallClock: () => number;
    /** Tells other servers that a tag was changed; returns at once, and never fails. */
    announce: () => void;
    effects: TagEffects;
  }) {
    this.#store = ports.store;
    this.#placement = ports.placement;
    this.#directory = ports.directory;
    this.#gate = ports.gate;
    this.#texts = ports.texts;
    this.#wallClock = ports.wallClock;
    this.#announce = ports.announce;
    this.#effects = ports.effects;
  }

  /** `extra`: what was found wrong with the request already; everything is answered at once. */
  async create(
    draft: TagDraft,
    extra: readonly FieldViolation[],
    options: ChangeOptions = {},
  ): Promise<Tag> {
    await this.#assertNotLost(draft.name);
    const placed = await this.#inItsPlace(draft);
    const made = settingsOf(placed, {
      nowMs: this.#wallClock(),
      placement: this.#placement,
      texts: this.#texts,
      keys: [],
    });
    const violations = [...("violations" in made ? made.violations : []), ...extra];
    if (violations.length > 0 || !("settings" in made)) throw invalidFields(violations);
    const settings =
      options.validateOnly === true ? made.settings : await this.#withSlots(made.settings);
    return this.#change(() => this.#store.createTag(settings, options), options);
  }

  async get(name: string): Promise<Tag> {
    assertNoViolations(tagNameViolation("name", name));
    return this.#read(name);
  }

  async list(query: {
    readonly pageSize: number;
    readonly pageToken: string;
    readonly prefix: string;
    readonly showDeleted: boolean;
  }): Promise<TagPage & { readonly nextPageToken: string }> {
    const { pageSize, pageToken, prefix, showDeleted } = query;
    const list = [showDeleted ? "deleted" : "alive", prefix];
    const afterName = decodePageToken(pageToken, list);
    assertNoViolations(
      pageSizeViolation(pageSize),
      afterName === undefined
        ? {
            field: "page_token",
            description: "belongs to another list: send it with the same prefix and show_deleted",
            reason: "INVALID_PAGE_TOKEN",
          }
        : undefined,
      prefix === "" || tagNameViolation("prefix", prefix) === undefined
        ? undefined
        : {
            field: "prefix",
            description: "must be the beginning of a tag's name",
            reason: "INVALID_NAME",
          },
    );
    const limit = pageLimitOf(pageSize);
    const found = await this.#gate.run(() =>
      this.#store.listTags({
        afterName: afterName ?? "",
        prefix,
        showDeleted,
        // One more than asked for tells whether there is a next page.
        limit: limit + 1,
      }),
    );
    const names = namesOn(found);
    const last = names.length > limit ? names[limit - 1] : undefined;
    const nextPageToken = last === undefined ? "" : encodePageToken(last, list);
    return { ...upTo(found, last), nextPageToken };
  }

  async update(
    draft: TagDraft,
    etag: string,
    paths: readonly string[],
    options: ChangeOptions = {},
  ): Promise<Tag> {
    assertNoViolations(tagNameViolation("tag.name", draft.name), ...maskViolations(paths));
    for (let tries = 1; ; tries++) {
      // A later try depends on the outcome of the one before.
      const old = await this.#read(draft.name);
      if (etag !== "" && etag !== etagOf(old)) throw etagMismatch(draft.name);
      const change = changeOf(old, draft, paths, {
        nowMs: this.#wallClock(),
        texts: this.#texts,
      });
      const isEarlierOver = this.#effects.isEarlierOver(old);
      try {
        // The settings are written as a whole, so they must be made of the newest.
        return await this.#change(
          () =>
            this.#store.updateTag(draft.name, { ...change, isEarlierOver }, old.revision, options),
          options,
        );
      } catch (thrown) {
        const error = IdmintError.from(thrown);
        const isOvertaken = error.reason === "ETAG_MISMATCH" && etag === "";
        if (!isOvertaken || tries >= MAX_UPDATE_TRIES) throw error;
      }
    }
  }

  async delete(request: NamedChange): Promise<Changed> {
    return this.#setState(request, "DELETED");
  }

  async pause(request: NamedChange): Promise<Changed> {
    return this.#setState(request, "PAUSED");
  }

  async resume(request: NamedChange): Promise<Changed> {
    return this.#setState(request, "ACTIVE");
  }

  async advance(
    request: NamedChange & { readonly floor: bigint; readonly allowLargeRaise: boolean },
  ): Promise<Changed & { readonly raised: boolean }> {
    const { name, floor, validateOnly, allowLargeRaise, etag, by } = request;
    assertNoViolations(
      tagNameViolation("name", name),
      floor < 1n
        ? {
            field: "floor",
            description: "is required: 1 to the tag's ceiling",
            reason: floor === 0n ? "FIELD_REQUIRED" : "VALUE_OUT_OF_RANGE",
          }
        : undefined,
    );
    const old = await this.#read(name);
    if (floor > old.ceiling) {
      const text = `must be at most the tag's ceiling, which is ${old.ceiling}`;
      throw invalidField("floor", text, "VALUE_OUT_OF_RANGE");
    }
    const options = {
      maxRaise: allowLargeRaise ? MAX_ID : MAX_RAISE,
      validateOnly,
      expectedRevision: expectedRevision(old, etag),
      by,
    };
    const { history } = this.#directory;
    const answer = await this.#gate.run(() => this.#store.advanceTag(name, floor, options));
    // failpoint: advance-durable
    if (!validateOnly) await this.#obey(answer.tag, history);
    return { ...(await this.#changed(answer.tag, validateOnly)), raised: answer.raised };
  }

  /** Puts a sequence back into an earlier period; see TagStore. */
  async returnToPeriod(
    request: NamedChange & { readonly period: string; readonly floor?: bigint | undefined },
  ): Promise<Changed & { readonly returned: boolean }> {
    const { name, period, floor, validateOnly, etag, by } = request;
    assertNoViolations(
      tagNameViolation("name", name),
      floor !== undefined && floor < 0n
        ? { field: "floor", description: "must be 0 to the tag's ceiling" }
        : undefined,
    );
    const old = await this.#read(name);
    const unit = periodsOf(old.kind)?.unit;
    if (unit === undefined) throw withoutPeriods(name, old.kind.kind);
    const start = periodStart(unit, period);
    if (start === undefined) {
      const example =
        old.periodStart === "" ? "" : `such as ${periodName({ unit, start: old.periodStart })}, `;
      throw invalidField(
        "period",
        `must name a ${unit.toLowerCase()} as answers do, ${example}got "${period}"`,
      );
    }
    const options = {
      validateOnly,
      expectedRevision: expectedRevision(old, etag),
      by,
    };
    const { history } = this.#directory;
    const answer = await this.#gate.run(() =>
      this.#store.returnToPeriod(name, { start, floor }, options),
    );
    if (!validateOnly) await this.#obey(answer.tag, history);
    return { ...(await this.#changed(answer.tag, validateOnly)), returned: answer.returned };
  }

  /** Moves a tag that counts in Redis to another Redis server. */
  async move(
    request: NamedChange & { readonly redisServer: string; readonly force: boolean },
  ): Promise<Tag> {
    const { name, redisServer, force, etag, validateOnly, by } = request;
    this.#placement.assertMovable(name, redisServer);
    const old = await this.#read(name);
    expectedRevision(old, etag);
    return this.#change(
      () => this.#placement.move(old, { redisServer, force, validateOnly, by }),
      request,
    );
  }

  /** The ended periods of a sequence that restarts, newest first; WRONG_KIND for tags that have none. */
  async listPeriods(query: {
    readonly name: string;
    readonly pageSize: number;
    readonly pageToken: string;
  }): Promise<PeriodPage> {
    const { name, pageSize, pageToken } = query;
    const list = ["periods", name];
    const before = decodePageToken(pageToken, list);
    const isOfList = before !== undefined && (before === "" || FIRST_DAY.test(before));
    assertNoViolations(
      tagNameViolation("name", name),
      pageSizeViolation(pageSize),
      isOfList
        ? undefined
        : {
            field: "page_token",
            description: "belongs to another list: send it with the same name",
            reason: "INVALID_PAGE_TOKEN",
          },
    );
    const { kind } = await this.#read(name);
    const unit = periodsOf(kind)?.unit;
    if (unit === undefined) throw withoutPeriods(name, kind.kind);
    const limit = pageLimitOf(pageSize);
    const found = await this.#gate.run(() =>
      this.#store.listPeriods({ tag: name, before: before ?? "", limit: limit + 1 }),
    );
    const periods = found.slice(0, limit);
    const last = periods.at(-1);
    const hasMore = found.length > limit && last !== undefined;
    return { unit, periods, nextPageToken: hasMore ? encodePageToken(last.start, list) : "" };
  }

  /** Rows of tags are never removed: a store without one that this server knows has lost it, and ids would come again. */
  async #assertNotLost(name: string): Promise<void> {
    if (!this.#directory.hasSeen(name)) return;
    const [tag] = await this.#gate.run(() => this.#store.getTags([name]));
    if (tag === undefined) throw storeWentBack(`tag "${name}" was there and is gone`, name);
  }

  /** A tag that counts elsewhere than in the store and is made once more stays where it is. */
  async #inItsPlace(draft: TagDraft): Promise<TagDraft> {
    const { name, kind } = draft;
    if (kind === undefined || !hasPlace(kind)) return draft;
    if (tagNameViolation("name", name) !== undefined) return draft;
    const [tag] = await this.#gate.run(() => this.#store.getTags([name]));
    if (tag === undefined || tag.state === "DELETED") return draft;
    return { ...draft, kind: inPlaceOf(kind, tag.kind) };
  }

  /** Slots of a ticket tag are made before the tag is: a tag without them could issue nothing. */
  async #withSlots(settings: TagSettings): Promise<TagSettings> {
    const { name, kind } = settings;
    if (!comesFrom(kind, "tickets") || kind.slotsId !== "") return settings;
    const made = await this.#gate.run(() => this.#placement.makeSlots(name, kind));
    return { ...settings, kind: made };
  }

  async #setState(request: NamedChange, state: TagState): Promise<Changed> {
    const { name, etag, validateOnly, by } = request;
    assertNoViolations(tagNameViolation("name", name));
    // An etag is of one revision; without one there is nothing to read first.
    const expected = etag === "" ? undefined : expectedRevision(await this.#read(name), etag);
    const tag = await this.#change(
      () => this.#store.setTagState(name, state, expected, { validateOnly, by }),
      request,
    );
    return this.#changed(tag, validateOnly || state === "ACTIVE");
  }

  /** `endsNothing`: there is nothing to wait for. */
  async #changed(tag: Tag, endsNothing = false): Promise<Changed> {
    return { tag, effect: endsNothing ? NO_EFFECT : await this.#effects.of(tag) };
  }

  /** By when nobody issues what the last change of a tag has ended, also of one that was deleted. */
  async effect(name: string): Promise<Changed> {
    assertNoViolations(tagNameViolation("name", name));
    const [tag] = await this.#gate.run(() => this.#store.getTags([name]));
    if (tag === undefined) throw tagNotFound(name);
    return this.#changed(tag);
  }

  async #read(name: string): Promise<Tag> {
    const [tag] = await this.#gate.run(() => this.#store.getTags([name]));
    if (tag === undefined || tag.state === "DELETED") throw tagNotFound(name);
    return tag;
  }

  /** One change in the store, which this server obeys before it answers; what was only checked is no change. */
  async #change(work: () => Promise<Tag>, { validateOnly = false }: ChangeOptions): Promise<Tag> {
    const { history } = this.#directory;
    const tag = await this.#gate.run(work);
    if (!validateOnly) await this.#obey(tag, history);
    return tag;
  }

  async #obey(tag: Tag, history: Directory["history"]): Promise<void> {
    this.#announce();
    await this.#directory.apply([tag], history);
  }
}

function withoutPeriods(tag: string, kind: string): IdmintError {
  return new IdmintError("WRONG_KIND", `tag "${tag}" has no periods, because it never restarts`, {
    metadata: { tag, kind },
  });
}

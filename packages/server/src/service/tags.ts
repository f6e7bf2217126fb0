import {
  assertNoViolations,
  type FieldViolation,
  IdmintError,
  invalidField,
  invalidFields,
  MAX_ID,
  MAX_RAISE,
  type Tag,
  type TagChange,
  type TagSettings,
  type TagState,
  type TagStore,
  tagNameViolation,
} from "@idmint/core";
import type { AdminGate } from "./admin-gate.ts";
import { tagNotFound } from "./call.ts";
import type { Directory } from "./directory.ts";
import { decodePageToken, encodePageToken } from "./page-token.ts";
import { settingsOf, type TagDraft, UPDATE_PATHS } from "./tag-settings.ts";

const DEFAULT_PAGE_SIZE = 50;
const MAX_PAGE_SIZE = 1_000;
/** Most paths a mask may have; there are fewer fields than that. */
const MAX_MASK_PATHS = 32;
/** How often an update without an etag is tried again when somebody else was faster. */
const MAX_UPDATE_TRIES = 5;
/** How long other servers on the store may take to notice a change. */
const PROPAGATION_MS = 1_000;

/** A tag after a change, and when the last segment that was allocated before it can be gone from callers' memory. */
export interface Changed {
  readonly tag: Tag;
  readonly effectiveAtMs: number;
}

/** A tag's etag: says which revision it is of, and nothing that callers should read. */
export function etagOf(tag: Tag): string {
  return `r${tag.revision.toString(36)}`;
}

/** Makes and manages tags. What is changed here holds on this server at once, elsewhere within a second. */
export class TagService {
  readonly #store: TagStore;
  readonly #directory: Directory;
  readonly #gate: AdminGate;
  readonly #wallClock: () => number;

  constructor(ports: {
    store: TagStore;
    directory: Directory;
    gate: AdminGate;
    wallClock: () => number;
  }) {
    this.#store = ports.store;
    this.#directory = ports.directory;
    this.#gate = ports.gate;
    this.#wallClock = ports.wallClock;
  }

  /** `extra`: what was found wrong with the request already; everything is answered at once. */
  async create(draft: TagDraft, extra: readonly FieldViolation[]): Promise<Tag> {
    const made = settingsOf(draft);
    const violations = [...("violations" in made ? made.violations : []), ...extra];
    if (violations.length > 0 || !("settings" in made)) throw invalidFields(violations);
    return this.#change(() => this.#store.createTag(made.settings));
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
  }): Promise<{ readonly tags: readonly Tag[]; readonly nextPageToken: string }> {
    const { pageSize, pageToken, prefix, showDeleted } = query;
    const afterName = decodePageToken(pageToken, query);
    assertNoViolations(
      pageSize < 0 || pageSize > MAX_PAGE_SIZE
        ? { field: "page_size", description: `must be 1 to ${MAX_PAGE_SIZE}, or 0 for the default` }
        : undefined,
      afterName === undefined
        ? {
            field: "page_token",
            description: "is not one of this list: send it with the same prefix and show_deleted",
          }
        : undefined,
      prefix === "" || tagNameViolation("prefix", prefix) === undefined
        ? undefined
        : { field: "prefix", description: "must be the beginning of a tag's name" },
    );
    const limit = pageSize === 0 ? DEFAULT_PAGE_SIZE : pageSize;
    const found = await this.#gate.run(() =>
      this.#store.listTags({
        afterName: afterName ?? "",
        prefix,
        showDeleted,
        // One more than asked for tells whether there is a next page.
        limit: limit + 1,
      }),
    );
    const tags = found.slice(0, limit);
    const last = tags.at(-1);
    const hasMore = found.length > limit && last !== undefined;
    return { tags, nextPageToken: hasMore ? encodePageToken(last.name, query) : "" };
  }

  async update(draft: TagDraft, etag: string, paths: readonly string[]): Promise<Tag> {
    assertNoViolations(tagNameViolation("tag.name", draft.name), ...maskViolations(paths));
    for (let tries = 1; ; tries++) {
      // A later try depends on the outcome of the one before.
      const old = await this.#read(draft.name);
      if (etag !== "" && etag !== etagOf(old)) throw etagMismatch(draft.name);
      const change = changeOf(old, draft, paths);
      try {
        // The settings are written as a whole, so they must be made of the newest.
        return await this.#change(() => this.#store.updateTag(draft.name, change, old.revision));
      } catch (thrown) {
        const error = IdmintError.from(thrown);
        const isOvertaken = error.reason === "ETAG_MISMATCH" && etag === "";
        if (!isOvertaken || tries >= MAX_UPDATE_TRIES) throw error;
      }
    }
  }

  async delete(name: string, etag: string): Promise<Changed> {
    return this.#setState(name, "DELETED", etag);
  }

  async pause(name: string, etag: string): Promise<Changed> {
    return this.#setState(name, "PAUSED", etag);
  }

  async resume(name: string, etag: string): Promise<Changed> {
    return this.#setState(name, "ACTIVE", etag);
  }

  async advance(request: {
    readonly name: string;
    readonly floor: bigint;
    readonly validateOnly: boolean;
    readonly allowLargeRaise: boolean;
    readonly etag: string;
  }): Promise<Changed & { readonly raised: boolean }> {
    const { name, floor, validateOnly, allowLargeRaise, etag } = request;
    assertNoViolations(
      tagNameViolation("name", name),
      floor < 1n
        ? { field: "floor", description: "must be 1 to the tag's ceiling; it is required" }
        : undefined,
    );
    const old = await this.#read(name);
    if (floor > old.ceiling) {
      throw invalidField("floor", `must be at most the tag's ceiling, which is ${old.ceiling}`);
    }
    const options = {
      maxRaise: allowLargeRaise ? MAX_ID : MAX_RAISE,
      validateOnly,
      expectedRevision: expectedRevision(old, etag),
    };
    const { history } = this.#directory;
    const answer = await this.#gate.run(() => this.#store.advanceTag(name, floor, options));
    if (!validateOnly) await this.#directory.apply([answer.tag], history);
    return { ...this.#changed(answer.tag), raised: answer.raised };
  }

  async #setState(name: string, state: TagState, etag: string): Promise<Changed> {
    assertNoViolations(tagNameViolation("name", name));
    // An etag is of one revision; without one there is nothing to read first.
    const expected = etag === "" ? undefined : expectedRevision(await this.#read(name), etag);
    const tag = await this.#change(() => this.#store.setTagState(name, state, expected));
    return this.#changed(tag);
  }

  #changed(tag: Tag): Changed {
    const effectiveAtMs = this.#wallClock() + PROPAGATION_MS + tag.kind.maxAgeMs;
    return { tag, effectiveAtMs };
  }

  async #read(name: string): Promise<Tag> {
    const [tag] = await this.#gate.run(() => this.#store.getTags([name]));
    if (tag === undefined || tag.state === "DELETED") throw tagNotFound(name);
    return tag;
  }

  /** One change in the store, which this server obeys before it answers. */
  async #change(work: () => Promise<Tag>): Promise<Tag> {
    const { history } = this.#directory;
    const tag = await this.#gate.run(work);
    await this.#directory.apply([tag], history);
    return tag;
  }
}

function expectedRevision(tag: Tag, etag: string): bigint | undefined {
  if (etag === "") return undefined;
  if (etag !== etagOf(tag)) throw etagMismatch(tag.name);
  return tag.revision;
}

function etagMismatch(tag: string): IdmintError {
  return new IdmintError(
    "ETAG_MISMATCH",
    `tag "${tag}" was changed by somebody else since this etag; get it and try again`,
    { metadata: { tag } },
  );
}

function maskViolations(paths: readonly string[]): readonly FieldViolation[] {
  const field = "update_mask";
  const known = [...UPDATE_PATHS.keys()].join(", ");
  if (paths.length === 0) return [{ field, description: `is required: at least one of ${known}` }];
  if (paths.length > MAX_MASK_PATHS) {
    return [{ field, description: `must have at most ${MAX_MASK_PATHS} paths` }];
  }
  const unknown = [...new Set(paths)].filter((path) => !UPDATE_PATHS.has(path));
  if (unknown.length === 0) return [];
  const shown = unknown.map((path) => JSON.stringify(path.slice(0, 64))).join(", ");
  return [
    { field, description: `names ${shown}, which cannot be changed; the paths are ${known}` },
  ];
}

/** The change a mask asks for, validated as a whole with what stays. */
function changeOf(old: Tag, draft: TagDraft, paths: readonly string[]): TagChange {
  let merged: TagDraft = draftOf(old);
  for (const path of paths) merged = UPDATE_PATHS.get(path)?.(merged, draft) ?? merged;
  const made = settingsOf(merged);
  if ("violations" in made) throw invalidFields(made.violations);
  const { description, order, ceiling, kind } = made.settings;
  const onlyIfUnissued =
    order !== old.order || ceiling !== old.ceiling || kind.start !== old.kind.start;
  return { description, settings: { order, ceiling, kind }, onlyIfUnissued };
}

function draftOf(settings: TagSettings): TagDraft {
  const { name, description, order, ceiling, kind } = settings;
  return { name, description, order, ceiling, kind };
}

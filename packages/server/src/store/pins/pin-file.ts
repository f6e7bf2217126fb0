import { readFile } from "node:fs/promises";
import path from "node:path";
import { invalidField } from "@idmint/core";
import { replaceFile } from "../kept/next-file.ts";

const FIELD = "snowflake.cache_file";
const FORMAT = "idmint stores 1";

/** What a server remembers of its store from one life to the next, also over a boot of the machine. */
export interface KnownStores {
  /** Ids of stores, by place (pin.ts). */
  readonly stores: ReadonlyMap<string, string>;
  /** The store's history that was seen last; undefined before the first one. */
  readonly present: string | undefined;
  /** Histories that were left, oldest first. */
  readonly left: readonly string[];
}

export const NOTHING_KNOWN: KnownStores = { stores: new Map(), present: undefined, left: [] };

/** The file lies beside that of the leases, which says nothing after a boot. */
export function pinFileOf(cacheFile: string): string {
  return `${path.resolve(cacheFile)}.store`;
}

/** What the file says; INVALID_ARGUMENT when there is one that cannot be read. It may name the store that is meant. */
export async function readPinFile(file: string): Promise<KnownStores> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return NOTHING_KNOWN;
    throw unreadable(file, error);
  }
  try {
    const fields = JSON.parse(text) as Readonly<Record<string, unknown>>;
    if (fields["format"] !== FORMAT) throw new Error("it is of another release");
    const { stores, present, left } = fields as unknown as {
      readonly stores: Readonly<Record<string, string>>;
      readonly present: string | null;
      readonly left: readonly string[];
    };
    const isWhole = typeof stores === "object" && Array.isArray(left);
    if (!isWhole) throw new Error("it is not whole");
    return { stores: new Map(Object.entries(stores)), present: present ?? undefined, left };
  } catch (error) {
    throw unreadable(file, error);
  }
}

/** Replaces the file by a whole one; fulfils when it and its name are on the disk. */
export async function writePinFile(file: string, known: KnownStores): Promise<void> {
  const { stores, present = null, left } = known;
  const fields = { format: FORMAT, stores: Object.fromEntries(stores), present, left };
  await replaceFile(file, {
    textFor: () => `${JSON.stringify(fields)}\n`,
    named: (made) => made.close(),
  });
}

function unreadable(file: string, cause: unknown): Error {
  const why = (cause as NodeJS.ErrnoException).code ?? (cause as Error).message;
  return invalidField(
    FIELD,
    `has a file beside it, ${file}, that says which store this server belongs to and cannot be read (${why}); if you know the store, remove that file and name it by store.expect_id`,
  );
}

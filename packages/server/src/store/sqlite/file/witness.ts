import {
  closeSync,
  constants,
  fchownSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { randomUUID } from "node:crypto";
import path from "node:path";
import { crc32 } from "node:zlib";
import { type FileSight, identityOf, isOf, nonceOf } from "./witness-state.ts";

/** How far a store had come: a file that lags behind such a mark is an older copy. */
export interface Mark {
  readonly storeId: string;
  readonly generation: bigint;
  readonly progress: bigint;
}

export interface Sight extends FileSight {
  /** What it says; undefined for a file that cannot be read as a witness. */
  readonly mark: Mark | undefined;
}

// One write of a fixed length, so that it never grows the file: a full disk does not hinder it once it is there.
const LENGTH = 160;
const HEAD = "idmint witness 1";
const { O_CREAT, O_EXCL, O_NOFOLLOW, O_RDWR } = constants;

/**
 * Whether a store at `mark` is behind an earlier sight of it. Every accept begins a generation above all earlier ones,
 * so another store under the same name is all right only when it was accepted after that sight.
 */
export function isBehind(mark: Mark, earlier: Mark): boolean {
  if (mark.generation !== earlier.generation) return mark.generation < earlier.generation;
  return mark.storeId !== earlier.storeId || mark.progress < earlier.progress;
}

export function witnessOf(databasePath: string): string {
  return `${databasePath}.witness`;
}

interface Held {
  readonly descriptor: number;
  readonly file: string;
}

/**
 * The file beside the database that remembers how far the database had come, so that a server that never saw the store
 * before still notices an older copy put in its place. Which file it is, and when another one takes its place, stands in
 * witness-state.ts; that is done by whoever holds the write lock of the database.
 *
 * INVARIANT: the witness is never ahead of the database. It is written after a commit that is already on disk, so a
 * process killed in between, several processes that overtake each other, and a kernel that dies before the witness
 * reaches the disk all leave it behind, which only weakens it by those commits. One that is ahead means that the
 * database lost something. What cannot be read says nothing, and is written over.
 */
export class Witness {
  readonly path: string;
  readonly #databasePath: string;
  /** Where the file that takes its place next is made. */
  readonly #aheadPath: string;
  #held: Held | undefined;

  constructor(databasePath: string) {
    this.#databasePath = databasePath;
    this.path = witnessOf(databasePath);
    this.#aheadPath = `${this.path}.next`;
  }

  /** The file that is there under the name now, or undefined. Later marks are recorded in it. */
  look(): Sight | undefined {
    const there = fileUnder(this.path);
    if (there !== this.#held?.file) this.close();
    if (there === undefined) return undefined;
    this.#held ??= open(this.path);
    return this.#held === undefined ? undefined : readWitness(this.#held);
  }

  /** The file that was made ahead, or whatever lies in its place. */
  lookAhead(): Sight | undefined {
    let held: Held | undefined;
    try {
      held = open(this.#aheadPath);
      return held === undefined ? undefined : readWitness(held);
    } catch {
      // Not what this process made: it is replaced.
      return undefined;
    } finally {
      if (held !== undefined) closeSync(held.descriptor);
    }
  }

  /** Writes a committed mark into the file of that name, if it is the one looked at last. The next commit tries again. */
  record(mark: Mark, identity: string): void {
    const held = this.#held;
    if (held === undefined || !isOf(identity, { file: held.file, nonce: undefined })) return;
    try {
      writeMark(held.descriptor, nonceOf(identity), mark);
    } catch {
      this.close();
    }
  }

  /** Makes the file that takes the place next, and answers its name; empty when there is no room, or no right, for it. */
  makeAhead(mark: Mark): string {
    try {
      rmSync(this.#aheadPath, { force: true });
      return this.#make(this.#aheadPath, mark);
    } catch {
      return "";
    }
  }

  /**
   * Puts the file made ahead in the place of the witness. False when that cannot be done; the witness stays then. `mark`
   * is one that is committed.
   */
  putInPlace(next: string, mark: Mark): boolean {
    let held: Held | undefined;
    try {
      held = open(this.#aheadPath);
      if (held === undefined || !isOf(next, readWitness(held))) return false;
      writeMark(held.descriptor, nonceOf(next), mark);
      renameSync(this.#aheadPath, this.path);
      // Somebody may have moved the folder meanwhile, and another one into its place.
      return isOf(next, this.look()) && this.settle();
    } catch {
      return false;
    } finally {
      if (held !== undefined) closeSync(held.descriptor);
    }
  }

  /** Makes the name of the witness outlive the machine, as surely as the row that will know it alone. False: it may not. */
  settle(): boolean {
    try {
      syncFolder(this.path);
      return true;
    } catch {
      return false;
    }
  }

  /** The name of the file that is there; makes one where none is. For whoever begins a history. */
  adopt(mark: Mark): string {
    const sight = this.look();
    if (sight !== undefined) return identityOf(sight.file, sight.nonce ?? newNonce());
    const identity = this.#make(this.path, mark);
    syncFolder(this.path);
    this.look();
    return identity;
  }

  /** Removes both files: what they say is of no store any more. */
  remove(): void {
    this.close();
    rmSync(this.path, { force: true });
    rmSync(this.#aheadPath, { force: true });
  }

  /** Makes a file that says `mark`, on disk for good, and answers its name. */
  #make(name: string, mark: Mark): string {
    const descriptor = openSync(name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
    try {
      // Root works with the store of another user; that user's servers have to go on with it.
      const { uid, gid } = statSync(this.#databasePath);
      if (process.getuid?.() === 0) fchownSync(descriptor, uid, gid);
      const nonce = newNonce();
      writeMark(descriptor, nonce, mark);
      fsyncSync(descriptor);
      const { ino, birthtimeNs } = fstatSync(descriptor, { bigint: true });
      return identityOf(`${ino}/${birthtimeNs}`, nonce);
    } finally {
      closeSync(descriptor);
    }
  }

  close(): void {
    if (this.#held !== undefined) closeSync(this.#held.descriptor);
    this.#held = undefined;
  }
}

function newNonce(): string {
  return randomUUID().replaceAll("-", "");
}

function fileUnder(name: string): string | undefined {
  const there = lstatSync(name, { bigint: true, throwIfNoEntry: false });
  return there === undefined ? undefined : `${there.ino}/${there.birthtimeNs}`;
}

/** Undefined when there is none. Links are not followed: whoever may write in the folder could lead to any file. */
function open(name: string): Held | undefined {
  try {
    const descriptor = openSync(name, O_RDWR | O_NOFOLLOW);
    const { ino, birthtimeNs } = fstatSync(descriptor, { bigint: true });
    return { descriptor, file: `${ino}/${birthtimeNs}` };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

function syncFolder(name: string): void {
  const folder = openSync(path.dirname(name), "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

function readWitness({ descriptor, file }: Held): Sight {
  const bytes = Buffer.alloc(LENGTH);
  const length = readSync(descriptor, bytes, 0, LENGTH, 0);
  return { file, ...parse(bytes.subarray(0, length).toString("latin1")) };
}

function writeMark(descriptor: number, nonce: string, mark: Mark): void {
  const text = `${HEAD} ${nonce} ${mark.storeId} ${mark.generation} ${mark.progress}`;
  const line = `${text} ${crc32(text)}`;
  const bytes = Buffer.from(`${line.padEnd(LENGTH - 1)}\n`, "latin1");
  if (writeSync(descriptor, bytes, 0, LENGTH, 0) !== LENGTH) throw new Error("a short write");
}

function parse(line: string): Pick<Sight, "mark" | "nonce"> {
  const nothing = { nonce: undefined, mark: undefined };
  const match = /^((?:\S+ ){3}(\S+) (\S+) (\d+) (\d+)) (\d+) *\n$/.exec(line);
  if (match === null) return nothing;
  const [, text = "", nonce = "", storeId = "", generation = "", progress = "", sum = ""] = match;
  if (!text.startsWith(`${HEAD} `) || Number(sum) !== crc32(text)) return nothing;
  return {
    nonce,
    mark: { storeId, generation: BigInt(generation), progress: BigInt(progress) },
  };
}

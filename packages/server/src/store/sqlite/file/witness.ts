import { closeSync, constants, fstatSync, openSync, readSync, statSync, writeSync } from "node:fs";
import { crc32 } from "node:zlib";

/** How far a store had come: a file that lags behind such a mark is an older copy. */
export interface Mark {
  readonly storeId: string;
  readonly generation: bigint;
  readonly progress: bigint;
}

// One write of a fixed length, so that it never grows the file: a full disk does not hinder it once it is there.
const LENGTH = 160;
const HEAD = "idmint witness 1";

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

/**
 * The file beside the database that remembers how far the database had come, so that a server that never saw the store
 * before still notices an older copy put in its place.
 *
 * INVARIANT: the witness is never ahead of the database. It is written after a commit that is already on disk, so a
 * process killed in between, several processes that overtake each other, and a kernel that dies before the witness
 * reaches the disk all leave it behind, which only weakens it by those commits. One that is ahead means that the
 * database lost something. A missing or unreadable witness (what a crash of the kernel may leave) says nothing and is
 * written anew; so an operator who puts an older copy in place and removes the witness too is on his own.
 */
export class Witness {
  readonly path: string;
  #file: number | undefined;

  constructor(databasePath: string) {
    this.path = witnessOf(databasePath);
  }

  /** What the witness says, or undefined when there is none or it cannot be read. */
  read(): Mark | undefined {
    const file = this.#open();
    if (file === undefined) return undefined;
    const bytes = Buffer.alloc(LENGTH);
    const length = readSync(file, bytes, 0, LENGTH, 0);
    return parse(bytes.subarray(0, length).toString("latin1"));
  }

  /** Records a mark that is committed. False when it cannot be written; the next commit tries again. */
  write(mark: Mark): boolean {
    try {
      const file = this.#open() ?? this.#create();
      return writeSync(file, format(mark), 0, LENGTH, 0) === LENGTH;
    } catch {
      this.close();
      return false;
    }
  }

  /** Opens the file by its name at the next use: somebody may have put another one there. */
  recheck(): void {
    if (this.#file === undefined) return;
    const there = statSync(this.path, { throwIfNoEntry: false });
    if (there === undefined || there.ino !== fstatSync(this.#file).ino) this.close();
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }

  #open(): number | undefined {
    if (this.#file !== undefined) return this.#file;
    try {
      this.#file = openSync(this.path, constants.O_RDWR);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
    return this.#file;
  }

  #create(): number {
    this.#file = openSync(this.path, constants.O_RDWR | constants.O_CREAT, 0o600);
    return this.#file;
  }
}

function format(mark: Mark): Buffer {
  const text = `${HEAD} ${mark.storeId} ${mark.generation} ${mark.progress}`;
  const line = `${text} ${crc32(text)}`;
  return Buffer.from(`${line.padEnd(LENGTH - 1)}\n`, "latin1");
}

function parse(line: string): Mark | undefined {
  const match = /^((?:\S+ ){3}(\S+) (\d+) (\d+)) (\d+) *\n$/.exec(line);
  if (match === null) return undefined;
  const [, text = "", storeId = "", generation = "", progress = "", checksum = ""] = match;
  if (!text.startsWith(`${HEAD} `) || Number(checksum) !== crc32(text)) return undefined;
  return { storeId, generation: BigInt(generation), progress: BigInt(progress) };
}

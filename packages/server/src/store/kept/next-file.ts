import { type FileHandle, open, rename, rm } from "node:fs/promises";
import path from "node:path";

export interface Replacing {
  /** What the new file holds. */
  readonly textFor: (file: FileHandle) => string | Promise<string>;
  /** It is on the disk, and the old one has its name yet. */
  readonly written?: () => Promise<void>;
  /** It has its name, which a crash of the machine may undo yet. It is to be closed by whoever is called. */
  readonly named: (file: FileHandle) => Promise<void>;
}

/** Puts a whole file in the place of another one; fulfils when it and its name are on the disk. */
export async function replaceFile(
  name: string,
  { textFor, written, named }: Replacing,
): Promise<void> {
  const next = `${name}.next`;
  // One that a process left behind when it was killed. Whatever lies there is not followed and not written to.
  await rm(next, { force: true });
  const file = await open(next, "wx", 0o600);
  try {
    await file.writeFile(await textFor(file));
    await file.datasync();
    await written?.();
    // failpoint: file-emptied
    await rename(next, name);
  } catch (error) {
    await file.close();
    throw error;
  }
  await named(file);
  // failpoint: file-named
  const folder = await open(path.dirname(name), "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

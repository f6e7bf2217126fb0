// Which file beside a store is its witness, and when another one takes that place.
//
// A store put back in place, together with its witness, has the contents of before in the files of now. So the row
// `store` names its witness by what cannot be written into a file, its inode and its time of birth, and by a nonce that
// lies in it; and another file takes the place of the witness, by rename, at each opening and once a minute. Whatever was
// copied before that names a file that is gone.
//
// The row knows two: the witness, and one that was made ahead and takes its place next. What is seen of the one, and what
// happens to it, always under the write lock of the database:
//
//   seen under the name | due                        | not due | refused
//   the row's present   | next is there: rename it,  | nothing | never
//                       | and make another ahead;    |         |
//                       | next is not: make one      |         |
//   the row's next      | a turn whose commit was lost: the row follows, and another is made ahead
//   none                | as present, at once: the process has seen the right one | by a process that has not
//   any other           | nothing                                                  | always
//
// Killed after the making: the row does not name that file, so it is replaced. Killed after the rename: the row's next is
// seen. A full disk: the file made ahead is there, and a rename needs no room; without a file ahead the present one stays.
// INVARIANT: a file is renamed only when a committed row names it, so at any moment the row names the file that is seen.

/** What the row `store` says of its witness; `next` is empty while no other one could be made. */
export interface Bond {
  readonly present: string;
  readonly next: string;
}

/** A file as it was seen. */
export interface FileSight {
  /** What only the file itself has: inode and time of birth. */
  readonly file: string;
  /** What lies in it; undefined for one that cannot be read as a witness. */
  readonly nonce: string | undefined;
}

export type Standing = "present" | "next" | "missing" | "foreign";

/** The name by which a row knows a file. */
export function identityOf(file: string, nonce: string): string {
  return `${file}/${nonce}`;
}

export function nonceOf(identity: string): string {
  return identity.slice(identity.lastIndexOf("/") + 1);
}

/** A file that cannot be read says nothing of its nonce: it is known by itself alone. */
export function isOf(identity: string, sight: FileSight | undefined): boolean {
  if (sight === undefined || identity === "") return false;
  const nonce = sight.nonce ?? nonceOf(identity);
  return identity === identityOf(sight.file, nonce);
}

export function standingOf(bond: Bond, sight: FileSight | undefined): Standing {
  if (sight === undefined) return "missing";
  if (isOf(bond.present, sight)) return "present";
  return isOf(bond.next, sight) ? "next" : "foreign";
}

/** What is to be done under the write lock. */
export type Step = "nothing" | "put the next in place" | "follow" | "make one ahead";

export function stepOf(
  bond: Bond,
  standing: Standing,
  ahead: FileSight | undefined,
  isDue: boolean,
): Step {
  if (standing === "foreign") return "nothing";
  if (standing === "next") return "follow";
  if (standing === "present" && !isDue) return "nothing";
  return isOf(bond.next, ahead) ? "put the next in place" : "make one ahead";
}

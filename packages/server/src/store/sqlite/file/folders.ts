import { statSync } from "node:fs";

/** Who may write in a folder besides its owner and root: whoever may, can put other files in the place of ours. */
export type Writers = "nobody" | "group" | "everybody" | "another user";

const GROUP_WRITES = 0o020;
const OTHERS_WRITE = 0o002;
const ROOT = 0;

/** Pure. `user`: this process's; undefined where users have no numbers. */
export function writersOf(
  { uid, mode }: { readonly uid: number; readonly mode: number },
  user: number | undefined,
): Writers {
  if (user === undefined) return "nobody";
  if (uid !== user && uid !== ROOT) return "another user";
  if ((mode & OTHERS_WRITE) !== 0) return "everybody";
  return (mode & GROUP_WRITES) === 0 ? "nobody" : "group";
}

/** Who may write in the folder of that name; its links are followed. */
export function writersIn(folder: string): Writers {
  return writersOf(statSync(folder), process.getuid?.());
}

/** Why files of this server must not lie there, in words; undefined when they may. */
export function folderFault(folder: string): string | undefined {
  const writers = writersIn(folder);
  if (writers === "everybody") {
    return `everybody on this machine may write in the folder ${folder}, and put other files in the place of this server's; take that right away (chmod o-w), or choose a folder of its own`;
  }
  if (writers === "another user") {
    return `the folder ${folder} is another user's, who can put other files in the place of this server's; give it to the user of this process (chown), or choose a folder of its own`;
  }
  return undefined;
}

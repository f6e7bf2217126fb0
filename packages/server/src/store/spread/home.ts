/** FNV-1a over the text's code units, and Murmur3's finaliser, which spreads what differs in a few bits only. */
function hash(seed: number, text: string): number {
  let h = seed;
  for (let at = 0; at < text.length; at++) h = Math.imul(h ^ text.charCodeAt(at), 0x01000193);
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/**
 * The database in which a tag is made and looked for first: the one of `members` with the highest score (rendezvous
 * hashing). A further database becomes the home of some tags, and no other one does.
 *
 * INVARIANT: the same names answer the same home for ever, in every release: another home would make a tag twice.
 */
export function homeOf(members: readonly string[], tag: string): string {
  let home = "";
  let highest = -1;
  for (const member of members) {
    // No name holds a slash. Two halves of 53 bits, since 32 would tie now and then; a tie goes to the first in order.
    const text = `${member}/${tag}`;
    const score = (hash(0x811c9dc5, text) & 0x1fffff) * 2 ** 32 + hash(0x9e3779b9, text);
    if (score <= highest) continue;
    highest = score;
    home = member;
  }
  return home;
}

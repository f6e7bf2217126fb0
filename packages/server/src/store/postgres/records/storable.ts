/** Characters that every encoding of a database has; NUL, which is one of them, is in none. */
const ASCII = /^\p{ASCII}*$/u;
const NUL = "\0";

/**
 * Writes characters that the database cannot store by their numbers. Rows of many callers are stored together, and one with
 * such a text would keep out the others; a row about a caller must not be lost because of what the caller sent.
 */
export function storableIn(encoding: string): (text: string) => string {
  const isStored = (char: string): boolean =>
    char !== NUL && (encoding === "UTF8" || ASCII.test(char));
  return (text) =>
    ASCII.test(text) && !text.includes(NUL)
      ? text
      : Array.from(text, (char) => (isStored(char) ? char : numberOf(char))).join("");
}

function numberOf(char: string): string {
  return `\\u{${char.codePointAt(0)?.toString(16)}}`;
}

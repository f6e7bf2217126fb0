import type { Io } from "./io.ts";

/** What can move a cursor, begin a line, or show text in another order than it has; C0 and C1 are in Cc. */
const HARMFUL = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;
/** The same without what our own layout is made of. */
const HARMFUL_IN_LAYOUT = /[\p{Zl}\p{Zp}\p{Bidi_Control}]|(?![\t\n])\p{Cc}/gu;

/**
 * Text of others as one line that is safe for a terminal: what could forge a line or hide another is shown as an escape,
 * which JSON reads back as what it was.
 */
export function plain(text: string): string {
  return text.replaceAll(HARMFUL, escapeOf);
}

function escapeOf(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

function laidOut(text: string): string {
  return text.replaceAll(HARMFUL_IN_LAYOUT, escapeOf);
}

/**
 * The same streams, on which nothing harmful comes out whoever wrote it: a server, a file, a database. Only its own drawing
 * (`first`) goes through as it is.
 *
 * INVARIANT: all that a command prints goes through here. What belongs on one line also goes through `plain`, as the cells of
 * tables and the sentences of failures do.
 */
export function plainIo(io: Io): Io {
  const { ask } = io;
  return {
    ...io,
    out: (text, first) => io.out((first ?? "") + laidOut(text)),
    err: (text, first) => io.err((first ?? "") + laidOut(text)),
    ask: ask === undefined ? undefined : (question) => ask(laidOut(question)),
  };
}

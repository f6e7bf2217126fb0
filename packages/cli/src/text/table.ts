/** Names and values, one pair a row. */
export type Rows = readonly (readonly [name: string, value: string])[];

/**
 * Rows of text in columns. Each column is as wide as its widest cell, with two spaces between columns and nothing after
 * the last. Free text belongs in the last column, where its width does not matter.
 */
export function columns(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((cell, index) => {
      widths[index] = Math.max(widths[index] ?? 0, cell.length);
    });
  }
  const lines = rows.map((row) =>
    row
      .map((cell, index) => cell + " ".repeat((widths[index] ?? 0) - cell.length))
      .join("  ")
      .trimEnd(),
  );
  return lines.map((line) => `${line}\n`).join("");
}

/**
 * Text of others, safe for a terminal: control characters are shown as escapes, so that it cannot move the cursor or
 * add rows.
 */
export function plain(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}

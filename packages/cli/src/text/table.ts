import { plain } from "../process/plain.ts";

/** Names and values, one pair a row. */
export type Rows = readonly (readonly [name: string, value: string])[];

/**
 * Rows of text in columns. Each column is as wide as its widest cell, with two spaces between columns and nothing after
 * the last. Free text belongs in the last column, where its width does not matter. A cell is one line, whatever is in it.
 */
export function columns(cells: readonly (readonly string[])[]): string {
  const rows = cells.map((row) => row.map(plain));
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

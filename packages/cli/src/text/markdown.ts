// Markdown as our docs use it, as plain text of 80 columns, as a manual page is.

const WIDTH = 80;

/** A text without marks: titles stand out, paragraphs are wrapped, tables become lists. */
export function plainMarkdown(markdown: string): string {
  const lines = markdown.replaceAll(/<!--[^]*?-->\n?/g, "").split("\n");
  const out: string[] = [];
  for (let at = 0; at < lines.length;) {
    const [block, next] = blockAt(lines, at);
    const isOneOfList = isItem(lines[at] ?? "") && (lines[at - 1] ?? "").trim() !== "";
    at = next;
    if (block.length === 0) continue;
    if (out.length > 0 && !isOneOfList) out.push("");
    out.push(...block);
  }
  return `${out.join("\n")}\n`;
}

type Block = readonly [lines: readonly string[], next: number];

/** One block from a line on, and where the next one begins. */
function blockAt(lines: readonly string[], at: number): Block {
  const line = lines[at] ?? "";
  if (line.trim() === "" || line.startsWith("![")) return [[], at + 1];
  const title = /^(#+) (.*)$/.exec(line);
  if (title !== null) return [[titled(title[1] ?? "", inline(title[2] ?? ""))], at + 1];
  if (line.trimStart().startsWith("```")) return fence(lines, at);
  if (isRow(line)) {
    const end = endOf(lines, at, isRow);
    return [table(lines.slice(at, end)), end];
  }
  let end = at + 1;
  while (end < lines.length && isText(lines[end] ?? "") && !isItem(lines[end] ?? "")) end += 1;
  const text = inline(
    lines
      .slice(at, end)
      .map((each) => each.trim())
      .join(" "),
  );
  if (!isItem(line)) return [wrapped(text, "", ""), end];
  const indent = " ".repeat(line.length - line.trimStart().length);
  const mark = /^(?:[-*]|\d+\.) /.exec(text)?.[0] ?? "";
  return [wrapped(text, indent, indent + " ".repeat(mark.length)), end];
}

function isRow(line: string): boolean {
  return line.startsWith("|");
}

function isText(line: string): boolean {
  return line.trim() !== "" && !isRow(line) && !/^(?:#| *```)/.test(line);
}

function isItem(line: string): boolean {
  return /^ *(?:[-*]|\d+\.) /.test(line);
}

function endOf(lines: readonly string[], at: number, is: (line: string) => boolean): number {
  let end = at;
  while (end < lines.length && is(lines[end] ?? "")) end += 1;
  return end;
}

function titled(marks: string, title: string): string {
  return marks.length <= 2 ? title.toUpperCase() : title;
}

/** Code is shown as it is. A diagram says nothing without its picture. */
function fence(lines: readonly string[], at: number): Block {
  const first = lines[at] ?? "";
  const length = lines.slice(at + 1).findIndex((line) => line.trimStart().startsWith("```"));
  const end = length < 0 ? lines.length : at + 1 + length;
  if (first.includes("mermaid")) return [[], end + 1];
  return [lines.slice(at + 1, end).map((line) => `    ${line}`.trimEnd()), end + 1];
}

/** Each row by itself: its first cell, then the others, with what they are. */
function table(rows: readonly string[]): readonly string[] {
  const [head = [], , ...body] = rows.map((row) =>
    row
      .replaceAll(/^\||\|$/g, "")
      .split(/(?<!\\)\|/)
      .map((cell) => inline(cell.trim().replaceAll("\\|", "|"))),
  );
  return body.flatMap(([first = "", ...cells]) => {
    const told = cells.flatMap((cell, at) => {
      if (cell === "") return [];
      const name = cells.length === 1 ? "" : (head[at + 1] ?? "");
      return wrapped(name === "" ? cell : `${name}: ${cell}`, "    ", "      ");
    });
    return [...wrapped(first, "  ", "  "), ...told];
  });
}

function inline(text: string): string {
  return text
    .replaceAll(/!?\[([^\]]*)\]\((https?:[^)\s]+)\)/g, "$1 ($2)")
    .replaceAll(/!?\[([^\]]*)\]\([^)\s]*\)/g, "$1")
    .replaceAll(/\*\*([^*]+)\*\*/g, "$1")
    .replaceAll(/<br ?\/?>/g, " ")
    .replaceAll(/`([^`]+)`/g, "$1");
}

function wrapped(text: string, first: string, others: string): readonly string[] {
  const lines: string[] = [];
  let line = first;
  let isEmpty = true;
  for (const word of text.split(/\s+/).filter((each) => each !== "")) {
    if (!isEmpty && line.length + 1 + word.length > WIDTH) {
      lines.push(line);
      line = others;
      isEmpty = true;
    }
    line += isEmpty ? word : ` ${word}`;
    isEmpty = false;
  }
  return isEmpty ? lines : [...lines, line];
}

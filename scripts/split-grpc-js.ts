// ts-proto writes clients and interfaces of servers beside the messages. They need grpc-js, and who wants messages alone must
// not load it for them. So they move into a file of their own: out of x.ts into x.grpc-js.ts.
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { parseSync, type Statement } from "oxc-parser";

const SUFFIX = ".grpc-js.ts";

/** Moves each statement that names something of grpc-js. What it needs of the others, it imports. */
export function splitOffGrpcJs(file: string): void {
  const text = readFileSync(file, "utf8");
  const { body } = parseSync(file, text).program;
  const grpcJs = body.find((one) => sourceOf(one) === "@grpc/grpc-js");
  if (grpcJs === undefined) return;
  const end = (at: number): number => body[at]?.end ?? 0;
  const parts = body.map((one, at) => ({ one, text: text.slice(end(at - 1), one.end) })); // with the comment above it
  const rest = parts.filter(({ one }) => one !== grpcJs);
  const isMoved = ({ text: part }: { text: string }): boolean => isAnyIn(namesOf(grpcJs), part);
  const moved = joined(rest.filter(isMoved));
  const stays = rest.filter((part) => !isMoved(part));
  const imports = Map.groupBy(stays, ({ one }) => sourceOf(one) ?? `./${path.basename(file)}`);
  const lines = [...imports].map(([from, ofIt]) => {
    const names = new Set(ofIt.flatMap(({ one }) => namesOf(one)));
    const needed = [...names].filter((name) => isAnyIn([name], moved)).toSorted();
    const list = needed.map((name) => `  ${name},\n`).join("");
    return list === "" ? "" : `import {\n${list}} from "${from}";\n`;
  });
  const head = text.slice(0, body[0]?.start) + text.slice(grpcJs.start, grpcJs.end);
  writeFileSync(file, `${joined(stays)}\n`);
  writeFileSync(file.replace(/\.ts$/, SUFFIX), `${head}\n${lines.join("")}${moved}\n`);
}

function joined(parts: readonly { readonly text: string }[]): string {
  return parts.map(({ text }) => text).join("");
}

function sourceOf(one: Statement): string | undefined {
  return one.type === "ImportDeclaration" ? one.source.value : undefined;
}

/** What a statement imports, or declares for others. */
function namesOf(one: Statement): readonly string[] {
  if (one.type === "ImportDeclaration") return one.specifiers.map(({ local }) => local.name);
  if (one.type !== "ExportNamedDeclaration" || one.declaration === null) return [];
  if (one.declaration.type !== "VariableDeclaration") {
    return "id" in one.declaration && one.declaration.id?.type === "Identifier"
      ? [one.declaration.id.name]
      : [];
  }
  return one.declaration.declarations.flatMap(({ id }) =>
    id.type === "Identifier" ? [id.name] : [],
  );
}

/** Whether code, without its comments, names one of these. */
function isAnyIn(names: readonly string[], code: string): boolean {
  const bare = code.replaceAll(/\/\*[^]*?\*\//g, "");
  return names.some((name) => new RegExp(String.raw`\b${name}\b`).test(bare));
}

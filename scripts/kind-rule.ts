// What is done by kind stands in core's tables of kinds, or in a record of all kinds: a comparison with the name of a kind
// is silent on the next one. This finds such comparisons outside of core's `kinds/`.
import { readFileSync } from "node:fs";
import path from "node:path";
import { parseSync } from "oxc-parser";
import { KIND_NAMES } from "../packages/core/src/kinds/table.ts";
import { root } from "./lib.ts";

const MAX_EXCEPTIONS = 12;
/** Files that may name kinds so, and why. */
const EXCEPTIONS: Readonly<Record<string, string>> = {
  "packages/client/src/adapters/typeorm.ts": "uuid is a type of columns",
  "packages/server/src/http/leaf.ts": "segment is a path of Leaf, for tags of any kind",
  "packages/server/src/http/leaf-route.ts": "the same",
  "packages/server/src/http/tinyid-route.ts": "segment is a path of Tinyid",
  "packages/server/src/service/redis/redis-tags.ts":
    "only kinds that can count in Redis have something there to prepare",
};

/** As the rows of a store and the messages of the API name them, and as they are typed. */
const NAMES: ReadonlySet<unknown> = new Set(
  KIND_NAMES.flatMap((name) => [
    name,
    name.replaceAll("_", "-"),
    name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
  ]),
);
const IN_STATEMENT = new RegExp(`'(?:${KIND_NAMES.join("|")})'`);
const SOME_KINDS = /\bPartial<\s*Record<[^,]*(?:KindName|\$case|\["kind"\])/;
const COMPARISONS: ReadonlySet<unknown> = new Set(["==", "===", "!=", "!==", "in"]);

/** A node of oxc's tree, as far as it matters here. */
type Node = Readonly<Record<string, unknown>> & { readonly type?: string; readonly start: number };

/** Each comparison with the name of a kind in these files, and each exception that there is no need of. */
export function kindFaults(files: readonly string[]): readonly string[] {
  const outside = files.filter((file) => !file.startsWith("packages/core/src/kinds/"));
  const found = outside.flatMap((file) => faultsOf(file).map((fault) => ({ file, fault })));
  const listed = Object.keys(EXCEPTIONS);
  return [
    ...found.filter(({ file }) => !listed.includes(file)).map(({ fault }) => fault),
    ...listed
      .filter((name) => !found.some(({ file }) => file === name))
      .map((name) => `${name}: is an exception of scripts/kind-rule.ts, and needs to be none`),
    ...(listed.length > MAX_EXCEPTIONS
      ? [`scripts/kind-rule.ts: more than ${MAX_EXCEPTIONS} exceptions`]
      : []),
  ];
}

function faultsOf(file: string): readonly string[] {
  const text = readFileSync(path.join(root, file), "utf8");
  const faults: string[] = [];
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) value.forEach(visit);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return;
    const node = value as Node;
    const what = wrongIn(node, text);
    if (what !== undefined) {
      const line = text.slice(0, node.start).split("\n").length;
      faults.push(`${file}:${line}: ${what}; ask for a fact of KindSpec, or a record of all kinds`);
    }
    for (const below of Object.values(node)) visit(below);
  };
  visit(parseSync(file, text).program);
  return faults;
}

function wrongIn(node: Node, text: string): string | undefined {
  const { type = "", start, end } = node as Node & { readonly end: number };
  switch (type) {
    case "BinaryExpression":
      if (!COMPARISONS.has(node["operator"])) return undefined;
      return isName(node["left"]) || isName(node["right"]) ? "compares with a kind" : undefined;
    case "SwitchStatement": {
      const cases = node["cases"] as readonly Node[];
      const rest = cases.find(({ test }) => test === null);
      if (rest === undefined || !cases.some(({ test }) => isName(test))) return undefined;
      const isChecked = text.slice(rest.start, end).includes("satisfies never");
      return isChecked ? undefined : "has a default for kinds that it does not name";
    }
    case "NewExpression":
    case "MemberExpression": {
      const list = (node["object"] ?? (node["arguments"] as readonly Node[])[0]) as
        | Node
        | undefined;
      const isOfNames =
        list?.type === "ArrayExpression" && (list["elements"] as Node[]).some(isName);
      return isOfNames ? "looks for a kind in a list" : undefined;
    }
    case "TSTypeReference":
      return SOME_KINDS.test(text.slice(start, end)) ? "has a record of some kinds" : undefined;
    case "Literal":
      return isStatement(node["value"]) ? "names a kind in a statement" : undefined;
    case "TemplateElement":
      return isStatement((node["value"] as Node)["cooked"])
        ? "names a kind in a statement"
        : undefined;
    default:
      return undefined;
  }
}

function isName(node: unknown): boolean {
  return NAMES.has((node as Node | null)?.["value"]);
}

function isStatement(text: unknown): boolean {
  return typeof text === "string" && IN_STATEMENT.test(text);
}

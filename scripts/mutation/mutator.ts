// Makes faults of a file's tree: each is another text for a part of it. All of a file's faults are compiled into it at once,
// each behind a question, so one transform serves them all and a fault costs no more than the tests that reach it.
import { parseSync } from "oxc-parser";

/** A fault: what stands in the file, and what it does instead. */
export interface Fault {
  /** Unique in its file, and the same for the same text. */
  readonly index: number;
  readonly line: number;
  readonly start: number;
  readonly end: number;
  readonly was: string;
  readonly becomes: string;
  /** How the new text stands beside the old one. */
  readonly shape: "expression" | "statement" | "block";
}

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [key: string]: unknown;
}

const BINARY: Readonly<Record<string, readonly string[]>> = {
  "<": ["<=", ">="],
  "<=": ["<", ">"],
  ">": [">=", "<="],
  ">=": [">", "<"],
  "===": ["!=="],
  "!==": ["==="],
  "+": ["-"],
  "-": ["+"],
  "*": ["/"],
  "/": ["*"],
  "%": ["*"],
  "<<": [">>"],
  ">>": ["<<"],
  ">>>": ["<<"],
  "&": ["|"],
  "|": ["&"],
};
const ASSIGNED: Readonly<Record<string, string>> = {
  "+=": "-=",
  "-=": "+=",
  "*=": "/=",
  "/=": "*=",
  "&=": "|=",
  "|=": "&=",
  "??=": "=",
};
const REMOVABLE: ReadonlySet<string> = new Set([
  "ExpressionStatement",
  "ReturnStatement",
  "ThrowStatement",
  "BreakStatement",
  "ContinueStatement",
]);
/** Types have no say at run time, and names and sources of modules are no values. */
const SKIPPED = /^(?:TS(?!AsExpression|NonNullExpression|SatisfiesExpression)|Import|ExportAll)/;

export function faultsOf(file: string, text: string): readonly Fault[] {
  const faults: Fault[] = [];
  const lines = lineStarts(text);
  const source = ({ start, end }: Node): string => text.slice(start, end);
  const add = (node: Node, becomes: string, shape: Fault["shape"] = "expression"): void => {
    const { start, end } = node;
    const line = lines.findLastIndex((from) => from <= start) + 1;
    faults.push({ index: faults.length, line, start, end, was: source(node), becomes, shape });
  };
  const visit = (node: Node, parent: Node | undefined, key: string): void => {
    if (SKIPPED.test(node.type)) return;
    if (parent !== undefined) mutate(node, parent, key, source, add);
    for (const [name, child] of childrenOf(node)) visit(child, node, name);
  };
  const { program, errors } = parseSync(file, text);
  if (errors.length > 0) throw new Error(`${file}: ${errors[0]?.message}`);
  visit(program as unknown as Node, undefined, "");
  return faults;
}

function lineStarts(text: string): readonly number[] {
  return [0, ...[...text.matchAll(/\n/g)].map(({ index }) => index + 1)];
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value && "start" in value;
}

function* childrenOf(node: Node): Generator<readonly [key: string, child: Node]> {
  for (const [key, value] of Object.entries(node)) {
    // A name is no value, and neither is what a statement is assigned to.
    if (key === "key" && node["computed"] !== true) continue;
    if (key === "directive" || (key === "id" && node.type !== "VariableDeclarator")) continue;
    for (const child of Array.isArray(value) ? (value as unknown[]) : [value])
      if (isNode(child)) yield [key, child];
  }
}

type Source = (node: Node) => string;
type Add = (node: Node, becomes: string, shape?: Fault["shape"]) => void;

function mutate(node: Node, parent: Node, key: string, source: Source, add: Add): void {
  if (REMOVABLE.has(node.type)) removeStatement(node, source, add);
  else if (node.type === "BlockStatement") emptyBlock(node, parent, key, add);
  else if (node.type === "Literal") changeLiteral(node, parent, add);
  else changeOperator(node, source, add);
  forceCondition(node, parent, key, add);
}

function removeStatement(node: Node, source: Source, add: Add): void {
  if (node["directive"] !== undefined && node["directive"] !== null) return;
  if (!source(node).startsWith("super(")) add(node, "", "statement");
}

/** A block of one statement that can be removed by itself, or that a condition guards, has that fault already. */
function emptyBlock(node: Node, parent: Node, key: string, add: Add): void {
  const body = node["body"] as readonly Node[];
  const [only] = body;
  if (only === undefined || (body.length === 1 && REMOVABLE.has(only.type))) return;
  if (parent.type === "IfStatement" && key === "consequent" && parent["alternate"] === null) return;
  add(node, "{}", "block");
}

function changeLiteral(node: Node, parent: Node, add: Add): void {
  const { value } = node;
  if (typeof value === "boolean") add(node, String(!value));
  if (typeof value !== "number" && typeof value !== "bigint") return;
  // What stands in for nothing goes with its `??`. Of -1 the sign is a fault of its own, and of `a < b ? -1 : 1` it is all.
  if (parent["operator"] === "??" || parent.type === "UnaryExpression") return;
  if (["consequent", "alternate"].some((key) => (parent[key] as Node)?.type === "UnaryExpression"))
    return;
  const suffix = typeof value === "bigint" ? "n" : "";
  const changed = typeof value === "bigint" ? [value + 1n, value - 1n] : [value + 1, value - 1];
  // Most numbers count something, and there is no less than none.
  for (const other of Number(value) === 0 ? changed.slice(0, 1) : changed)
    add(node, `${other}${suffix}`);
}

function changeOperator(node: Node, source: Source, add: Add): void {
  const operator = String(node["operator"]);
  const [left, right] = [node["left"], node["right"]] as readonly Node[];
  if (node.type === "BinaryExpression" && isNode(left) && isNode(right)) {
    if (operator === "+" && [left, right].some(isText)) return;
    for (const other of BINARY[operator] ?? [])
      add(node, `${source(left)} ${other} ${source(right)}`);
  } else if (node.type === "LogicalExpression" && isNode(left) && isNode(right)) {
    if (operator === "??") add(node, source(left));
    else add(node, `(${source(left)}) ${operator === "&&" ? "||" : "&&"} (${source(right)})`);
  } else if (node.type === "AssignmentExpression" && isNode(left) && isNode(right)) {
    const other = ASSIGNED[operator];
    if (other !== undefined) add(node, `${source(left)} ${other} ${source(right)}`);
  } else if (node.type === "UpdateExpression") {
    add(node, source(node).replace(operator, operator === "++" ? "--" : "++"));
  } else if (node.type === "UnaryExpression" && (operator === "!" || operator === "-")) {
    add(node, source(node).slice(1));
  } else if (node.type === "ChainExpression") {
    const text = source(node);
    const chain = linksOf(node["expression"] as Node, node.start);
    for (const at of chain)
      add(node, text.slice(0, at) + text.slice(at).replace(/\?\.(?=[[(])|\?(?=\.)/, ""));
  }
}

function isText({ type, value }: Node): boolean {
  return type === "TemplateLiteral" || typeof value === "string";
}

/** Behind which offsets of a chain a `?.` stands. */
function linksOf(node: Node, from: number): readonly number[] {
  const inner = (node["object"] ?? node["callee"] ?? node["expression"]) as Node | undefined;
  if (inner === undefined) return [];
  const before = /^(?:Member|Call|TSNonNull)Expression$/.test(inner.type)
    ? linksOf(inner, from)
    : [];
  return node["optional"] === true ? [...before, inner.end - from] : before;
}

/** A loop that never ends shows nothing, so the conditions of loops are forced one way only. */
function forceCondition(node: Node, parent: Node, key: string, add: Add): void {
  if (key !== "test") return;
  if (parent.type === "SwitchCase" || node.type === "Literal") return;
  add(node, "false");
  if (parent.type === "IfStatement" || parent.type === "ConditionalExpression") add(node, "true");
}

/** The file with these faults in it, each behind `$fault(first + index)`. Lines stay where they are. */
export function withFaults(text: string, faults: readonly Fault[], first: number): string {
  const sorted = faults.toSorted((a, b) => a.start - b.start || b.end - a.end || a.index - b.index);
  let next = 0;
  /** The text between two places, with the faults in it. */
  const render = (start: number, end: number): string => {
    let out = "";
    let at = start;
    for (let fault = sorted[next]; fault !== undefined && fault.start < end; fault = sorted[next]) {
      if (fault.end > end) throw new Error(`a fault overlaps another one: ${fault.was}`);
      const here = [fault];
      for (next++; sorted[next]?.start === fault.start && sorted[next]?.end === fault.end; next++)
        here.push(sorted[next] as Fault);
      out += text.slice(at, fault.start) + chosen(here, first, render(fault.start, fault.end));
      at = fault.end;
    }
    return out + text.slice(at, end);
  };
  return `const $fault=globalThis.$idmintFault??(()=>false);${render(0, text.length)}`;
}

function chosen(faults: readonly Fault[], first: number, original: string): string {
  return faults.reduceRight((rest, { index, becomes, shape }) => {
    const asked = `$fault(${first + index})`;
    if (shape === "expression") return `(${asked}?(${becomes}):${rest})`;
    return `{if(!${asked})${rest}}`;
  }, original);
}

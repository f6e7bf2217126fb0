import { type FieldViolation, IdmintError } from "@idmint/core";
import { CommanderError } from "commander";
import { EXIT, exitCodeOf } from "../process/exit-code.ts";
import { plain } from "../process/plain.ts";
import { FLAG_OF_KIND_FIELD, FLAG_OF_SETTING } from "../flags/kind-flags.ts";

/** What went wrong, as it is shown. `code` and `reason` are names and not types: a newer server may know more of them. */
export interface Failure {
  readonly exitCode: number;
  readonly code: string;
  readonly reason: string;
  readonly message: string;
  readonly fields: readonly FieldViolation[];
  readonly metadata: Readonly<Record<string, string>>;
  readonly retryAfterMs: number | undefined;
  /** The stack of an unforeseen fault; undefined for all others. */
  /** What people are shown below the message, a line each. */
  readonly lines?: readonly string[] | undefined;
  readonly stack: string | undefined;
}

/** A failure on its way from where it was found to the one place that reports it. */
export class CommandFailure extends Error {
  override readonly name = "CommandFailure";
  readonly failure: Failure;

  constructor(failure: Failure, cause?: unknown) {
    super(failure.message, cause === undefined ? undefined : { cause });
    this.failure = failure;
  }
}

/** A failure with what most of them have in common filled in. */
export function failureOf(
  code: string,
  reason: string,
  text: string,
  more: Partial<Failure> = {},
): Failure {
  return {
    exitCode: exitCodeOf(code),
    code,
    reason,
    message: text.startsWith(`${reason}: `) ? text : `${reason}: ${text}`,
    fields: [],
    metadata: {},
    retryAfterMs: undefined,
    stack: undefined,
    ...more,
  };
}

/** Any thrown value as a failure; undefined when commander only ended early, after printing help. */
export function failureFrom(thrown: unknown): Failure | undefined {
  if (thrown instanceof CommandFailure) return thrown.failure;
  if (thrown instanceof IdmintError) {
    return failureOf(thrown.code, thrown.reason, thrown.message, {
      fields: thrown.violations,
      metadata: thrown.metadata,
      retryAfterMs: thrown.retryAfterMs,
      // Only an unforeseen fault needs its stack.
      stack: thrown.code === "INTERNAL" ? stackOf(thrown.cause ?? thrown) : undefined,
    });
  }
  if (thrown instanceof CommanderError) return usageFailure(thrown);
  const text = thrown instanceof Error ? thrown.message : String(thrown);
  return failureOf("INTERNAL", "INTERNAL", text, { stack: stackOf(thrown) });
}

function stackOf(thrown: unknown): string | undefined {
  return thrown instanceof Error ? thrown.stack : undefined;
}

/**
 * The failure of a command line that commander refused. Its message already says what is allowed, and what may have
 * been meant.
 */
function usageFailure(error: CommanderError): Failure | undefined {
  if (error.exitCode === EXIT.ok) return undefined;
  if (error.code === "commander.help") {
    return failureOf("INVALID_ARGUMENT", "INVALID_ARGUMENT", "a command is missing", {
      fields: [{ field: "command", description: "is required" }],
    });
  }
  const text = error.message.replace(/^error: /, "").replaceAll("\n", " ");
  // Commander quotes the argument at fault first. This only fills the field that is shown.
  const quoted = /'([^']+)'/.exec(text)?.[1] ?? "command";
  const flag = /--[\w-]+/.exec(quoted)?.[0] ?? quoted;
  const field = error.code === "commander.missingArgument" ? flag.toUpperCase() : flag;
  return failureOf("INVALID_ARGUMENT", "INVALID_ARGUMENT", text, {
    fields: [{ field, description: text }],
  });
}

/** The argument or flag of each field of the API. */
const FLAG_OF_FIELD: Readonly<Record<string, string>> = {
  "tag.name": "NAME",
  name: "NAME",
  tag: "TAG",
  count: "--count",
  floor: "--floor",
  etag: "--etag",
  "tag.etag": "--etag",
  "tag.description": "--description",
  "tag.order": "--order",
  "tag.ceiling": "--ceiling",
  "tag.kind": "--kind",
  ...FLAG_OF_KIND_FIELD,
  "tag.format": "--format",
  "tag.format.template": "--format",
  "tag.unguessable": "--key-id",
  "tag.unguessable.key_id": "--key-id",
  "tag.unguessable.key_digits": "--key-digits",
  redis_server: "--to",
  page_size: "--limit",
  page_token: "--page-token",
  prefix: "--prefix",
  id: "ID",
  text: "ID",
  extension: "--extension",
  dataCenter: "--data-center",
  worker: "--worker",
  sequence: "--sequence",
};

/** The flags of settings that descriptions name as the API does. */
const FLAG_OF_WORD: Readonly<Record<string, string>> = {
  allow_large_raise: "--allow-large-raise",
  ...FLAG_OF_SETTING,
};

/** What to type next, for reasons whose text does not say it. */
const WAY_OUT: Readonly<Record<string, (metadata: Readonly<Record<string, string>>) => string>> = {
  SERVER_UNAVAILABLE: () =>
    "start a server with `idmint start-dev`, or name another one with --address",
  UNAUTHENTICATED: () =>
    "prove who calls with --token-file, the variable IDMINT_TOKEN_FILE, or a context: idmint help context",
  TAG_EXISTS: ({ tag }) => `see its settings with \`idmint tag get ${tag ?? "NAME"}\``,
};

/** The failure in words for people: what went wrong, then the way out. */
export function failureText(failure: Failure): string {
  const lines = [`idmint: ${plain(headline(failure))}`];
  const wayOut = WAY_OUT[failure.reason]?.(failure.metadata);
  if (wayOut !== undefined) lines.push(`  ${plain(wayOut)}`);
  for (const line of failure.lines ?? []) lines.push(`  ${plain(line)}`);
  if (failure.retryAfterMs !== undefined) lines.push(`  try again in ${failure.retryAfterMs} ms`);
  // Indented, so that no line of it can be taken for another failure.
  if (failure.stack !== undefined) lines.push(failure.stack.replaceAll(/^/gmu, "  "));
  return `${lines.join("\n")}\n`;
}

function headline({ reason, message, fields }: Failure): string {
  // Fields of the API are shown as the flags that were typed. A flag, or a sentence of commander, stays as it is.
  if (fields.length === 0 || !fields.some(({ field }) => field in FLAG_OF_FIELD)) return message;
  const texts = fields.map(({ field, description }) => {
    // A part of a template, such as {data_center}, has the name of a setting and is none.
    const told = description.replaceAll(
      /\{[^{}]*\}|\b[a-z]+(?:_[a-z]+)+\b/g,
      (word) => FLAG_OF_WORD[word] ?? word,
    );
    return `${FLAG_OF_FIELD[field] ?? field} ${told}`;
  });
  return `${reason}: ${texts.join("; ")}`;
}

/** The failure as one line of JSON, for scripts: what --json puts on stderr. */
export function failureJson(failure: Failure): string {
  const { exitCode, code, reason, message, fields, metadata, retryAfterMs, stack } = failure;
  const error = { code, reason, message, fields, metadata, retryAfterMs, exitCode, stack };
  return `${JSON.stringify({ error })}\n`;
}

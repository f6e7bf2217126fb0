// What an answer must be: a message within the bounds of its fields, or a refusal with a code and a reason of the table.
import { type DescField, type DescMessage, type DescMethod, fromBinary } from "@bufbuild/protobuf";
import { reflect, type ReflectMessage } from "@bufbuild/protobuf/reflect";
import { type Code, CODE_OF_REASON } from "@idmint/core";
import { BadRequest, Code as Codes, ErrorInfo, RetryInfo, Status } from "@idmint/proto/rpc";

const MAX_TEXT = 8 * 1_024;
const MAX_ERROR_TEXT = 1_000;
const MAX_LIST = 10_000;
const MAX_RETRY_S = 3_600n;
/** Years 1 to 9999. */
const TIMES = [-62_135_596_800n, 253_402_300_799n] as const;

const REASONS: Readonly<Partial<Record<string, Code>>> = CODE_OF_REASON;

/** What is wrong with the bytes of an answer; undefined: nothing. */
export function faultOfAnswer(method: DescMethod, bytes: Uint8Array): string | undefined {
  try {
    return faultOfMessage(reflect(method.output, fromBinary(method.output, bytes)), "");
  } catch (thrown) {
    return `an answer that cannot be read: ${String(thrown)}`;
  }
}

function faultOfMessage(message: ReflectMessage, at: string): string | undefined {
  const unknown = message.getUnknown()?.length ?? 0;
  if (unknown > 0) return `${at}: unknown fields`;
  if (message.desc.typeName === "google.protobuf.Timestamp") {
    const seconds = message.get(message.desc.fields[0] as DescField) as bigint;
    return seconds < TIMES[0] || seconds > TIMES[1] ? `${at}: ${seconds} s is no time` : undefined;
  }
  for (const field of message.fields) {
    if (!message.isSet(field)) continue;
    const place = at === "" ? field.name : `${at}.${field.name}`;
    const value: unknown = message.get(field);
    const fault =
      field.fieldKind === "list"
        ? faultOfList(field, value as Iterable<unknown>, place)
        : faultOfValue(field, value, place);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function faultOfList(field: DescField, list: Iterable<unknown>, at: string): string | undefined {
  let length = 0;
  for (const value of list) {
    if (++length > MAX_LIST) return `${at}: more than ${MAX_LIST}`;
    const fault = faultOfValue(field, value, at);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function faultOfValue(field: DescField, value: unknown, at: string): string | undefined {
  if (field.enum !== undefined && field.fieldKind !== "map") {
    return field.enum.value[value as number] === undefined
      ? `${at}: no value ${String(value)}`
      : undefined;
  }
  if (typeof value === "string" && value.length > MAX_TEXT) return `${at}: ${value.length} letters`;
  // Whatever is counted or made begins at 0.
  const isBelow = typeof value === "bigint" && value < 0n && !/offset|drift|_ms$/.test(field.name);
  if (isBelow && field.parent.typeName.startsWith("idmint.")) return `${at}: ${value}`;
  return field.fieldKind !== "map" && field.message !== undefined
    ? faultOfMessage(value as ReflectMessage, at)
    : undefined;
}

/** A refusal as it came over gRPC. */
export interface Refused {
  /** Its name. */
  readonly code: string;
  readonly message: string;
  /** The trailer grpc-status-details-bin. */
  readonly details: Uint8Array | undefined;
}

/** What is wrong with a refusal; undefined: nothing. `of`: the request's message, whose fields violations may name. */
export function faultOfRefusal(of: DescMessage, { code, message, details }: Refused) {
  if (code === "INTERNAL" || code === "UNKNOWN") return `${code}: ${message}`;
  const text = faultOfText(message);
  if (text !== undefined) return `${code}: ${text}, details ${details?.length}`;
  if (details === undefined) return `${code} without details: ${message}`;
  const status = Status.decode(details);
  if (Codes[status.code as never] !== code && status.code !== Codes[code as keyof typeof Codes])
    return `${code} with the details of ${status.code}`;
  const detail = (name: string): Uint8Array | undefined =>
    status.details.find(({ typeUrl }) => typeUrl.endsWith(`/google.rpc.${name}`))?.value;
  const { reason, domain } = ErrorInfo.decode(detail("ErrorInfo") ?? new Uint8Array());
  if (domain !== "idmint" || REASONS[reason] !== code) return `${code} for ${domain} ${reason}`;
  const { fieldViolations } = BadRequest.decode(detail("BadRequest") ?? new Uint8Array());
  if (code === "INVALID_ARGUMENT" && reason !== "MALFORMED_REQUEST" && fieldViolations.length === 0)
    return `${reason} without a field: ${message}`;
  for (const { field, description, reason: why } of fieldViolations) {
    if (description === "" || (REASONS[why] === undefined && why !== "")) return `${field}: ${why}`;
    if (!hasField(of, field)) return `no field ${field} of ${of.typeName}: ${description}`;
  }
  const retry = detail("RetryInfo");
  const { seconds = 0n } = retry === undefined ? {} : (RetryInfo.decode(retry).retryDelay ?? {});
  if (code === "UNAVAILABLE" && retry === undefined) return `${reason} without RetryInfo`;
  return seconds < 0n || seconds > MAX_RETRY_S ? `RetryInfo of ${seconds} s` : undefined;
}

function faultOfText(message: string): string | undefined {
  if (message === "" || message.length > MAX_ERROR_TEXT)
    return `a text of ${message.length} letters`;
  return /^\s+at |\bat \w+ \(|TypeError|undefined is|SQLITE_|\.ts:\d/.test(message)
    ? `a text that tells of the code: ${message}`
    : undefined;
}

/** Whether a path such as `tag.segment.min` leads to a field. */
function hasField(of: DescMessage, path: string): boolean {
  let message: DescMessage | undefined = of;
  for (const part of path.split(".")) {
    const name: string = part.replace(/\[\d*\]$/, "");
    const field: DescField | undefined = message?.fields.find((each) => each.name === name);
    const isOneof: boolean = message?.oneofs.some((each) => each.name === name) ?? false;
    if (field === undefined && !isOneof) return false;
    message = field?.message;
  }
  return true;
}

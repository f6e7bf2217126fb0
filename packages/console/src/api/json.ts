import type {
  AccessServiceService,
  AuditServiceService,
  IdServiceService,
  NodeServiceService,
  TagServiceService,
  WorkerServiceService,
} from "@idmint/proto";

/** `seconds` and `nanos`: a duration is "1.5s" in JSON. */
interface DurationMessage {
  readonly seconds: bigint;
  readonly nanos: number;
}

/**
 * What a value of the API is in JSON: ids and other int64 are decimal text, so no digit is lost; times are RFC 3339, durations
 * "1.5s", bytes base64, enums their names in the .proto file.
 */
type Json<T> = T extends bigint | Date | Uint8Array | DurationMessage
  ? string
  : T extends number
    ? number extends T
      ? number
      : string
    : T extends readonly (infer Item)[]
      ? readonly Json<Item>[]
      : T extends object
        ? JsonMessage<T>
        : T;

/** The fields of a message; the fields of a oneof stand beside the others, at most one of them. */
type JsonMessage<T> = {
  readonly [K in keyof T as IsChoice<T[K]> extends true ? never : K]: undefined extends T[K]
    ? Json<NonNullable<T[K]>> | null | undefined
    : Json<T[K]>;
} & ChoicesOf<T>;

type IsChoice<T> = [NonNullable<T>] extends [{ readonly $case: string }] ? true : false;

type ChoicesOf<T> = UnionToIntersection<
  {
    [K in keyof T]-?: IsChoice<T[K]> extends true ? Choice<NonNullable<T[K]>> : never;
  }[keyof T]
>;

type Choice<T> = T extends { readonly $case: infer Case extends string; readonly value: infer V }
  ? { readonly [K in Case]?: Json<V> | undefined }
  : never;

type UnionToIntersection<T> = [T] extends [never]
  ? unknown
  : (T extends unknown ? (one: T) => void : never) extends (all: infer All) => void
    ? All
    : never;

/** A request: whatever is left out has its default. */
type JsonRequest<T> = T extends object
  ? T extends readonly (infer Item)[]
    ? readonly JsonRequest<Item>[]
    : { readonly [K in keyof T]?: JsonRequest<T[K]> | undefined }
  : T;

/** The services that the console calls, by their names in the .proto files. */
interface Services {
  readonly AccessService: typeof AccessServiceService;
  readonly AuditService: typeof AuditServiceService;
  readonly IdService: typeof IdServiceService;
  readonly NodeService: typeof NodeServiceService;
  readonly TagService: typeof TagServiceService;
  readonly WorkerService: typeof WorkerServiceService;
}

/** A unary method as the generated code has it. */
interface Unary<Request, Response> {
  readonly requestStream: false;
  readonly responseStream: false;
  readonly requestSerialize: (value: Request) => unknown;
  readonly responseSerialize: (value: Response) => unknown;
}

export type ServiceName = keyof Services;

export type MethodName<S extends ServiceName> = {
  [M in keyof Services[S]]: Services[S][M] extends Unary<never, never> ? M : never;
}[keyof Services[S]] &
  string;

export type RequestOf<S extends ServiceName, M extends MethodName<S>> =
  Services[S][M] extends Unary<infer Request, never> ? JsonRequest<Json<Request>> : never;

export type ResponseOf<S extends ServiceName, M extends MethodName<S>> =
  Services[S][M] extends Unary<never, infer Response> ? Json<Response> : never;

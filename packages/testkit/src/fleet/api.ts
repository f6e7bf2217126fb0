import {
  type CallOptions,
  type ClientUnaryCall,
  credentials,
  Metadata,
  type ServiceError,
} from "@grpc/grpc-js";
import { fromServiceError } from "@idmint/client";
import { cancelled } from "@idmint/core";
import {
  type GenerateIdResponse,
  type GenerateIdsRequest,
  type GenerateIdsResponse,
  SequenceKind,
  SnowflakeKind,
  SnowflakeLayout,
  Tag,
} from "@idmint/proto";
import {
  HealthClient,
  IdServiceClient,
  NodeServiceClient,
  TagServiceClient,
} from "@idmint/proto/grpc-js";
import { HealthCheckResponse_ServingStatus } from "@idmint/proto/health";

type Unary<Request, Answer> = (
  request: Request,
  metadata: Metadata,
  options: Partial<CallOptions>,
  done: (error: ServiceError | null, answer: Answer) => void,
) => ClientUnaryCall;

const CHANNEL = {
  "grpc.enable_retries": 0,
  "grpc.initial_reconnect_backoff_ms": 50,
  "grpc.max_reconnect_backoff_ms": 500,
  "grpc.use_local_subchannel_pool": 1,
};

/** What a test says of a tag; the rest are the server's defaults. */
export interface TagOptions {
  readonly name: string;
  readonly start?: bigint;
  readonly ceiling?: bigint;
  readonly min?: number;
  readonly max?: number;
  readonly order?: Tag["order"];
  readonly tinyidStep?: number;
}

/** gRPC calls to one server over one connection, each tried once. They reject with IdmintError. Close it. */
export class Api implements Disposable {
  readonly ids: IdServiceClient;
  readonly tags: TagServiceClient;
  readonly nodes: NodeServiceClient;
  readonly health: HealthClient;
  readonly #token: string;

  /** `ca`: of a server that shows a certificate for `localhost`. Undefined: in plain text. `token`: default: none. */
  constructor(address: string, ca?: string, token = "") {
    this.#token = token;
    const through =
      ca === undefined ? credentials.createInsecure() : credentials.createSsl(Buffer.from(ca));
    const named = ca === undefined ? {} : { "grpc.ssl_target_name_override": "localhost" };
    this.health = new HealthClient(address, through, { ...CHANNEL, ...named });
    const same = { channelOverride: this.health.getChannel() };
    this.ids = new IdServiceClient(address, through, same);
    this.tags = new TagServiceClient(address, through, same);
    this.nodes = new NodeServiceClient(address, through, same);
  }

  /** One call of any method, bound to its client. */
  send<Request, Answer>(
    method: Unary<Request, Answer>,
    request: Request,
    deadlineMs = 5_000,
    signal?: AbortSignal,
  ): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const options = { deadline: Date.now() + deadlineMs };
      const metadata = new Metadata();
      if (this.#token !== "") metadata.set("authorization", `Bearer ${this.#token}`);
      const call = method(request, metadata, options, (error, answer) => {
        if (error === null) resolve(answer);
        else reject(signal?.aborted === true ? cancelled() : fromServiceError(error));
      });
      signal?.addEventListener("abort", () => call.cancel());
    });
  }

  async id(tag: string, deadlineMs?: number, signal?: AbortSignal): Promise<bigint> {
    return (await this.generateId(tag, deadlineMs, signal)).id;
  }

  generateId(tag: string, deadlineMs?: number, signal?: AbortSignal): Promise<GenerateIdResponse> {
    return this.send(this.ids.generateId.bind(this.ids), { tag, name: "" }, deadlineMs, signal);
  }

  generateIds(request: GenerateIdsRequest, deadlineMs?: number): Promise<GenerateIdsResponse> {
    return this.send(this.ids.generateIds.bind(this.ids), request, deadlineMs);
  }

  async createTag(options: TagOptions): Promise<void> {
    const { name, start = 0n, ceiling = 0n, min = 0, max = 0, tinyidStep = 0 } = options;
    const segment = { start, min, max, holdFor: undefined, maxAge: undefined, tinyidStep };
    const kind = { $case: "segment", value: segment } as const;
    const tag = { ...Tag.create(), name, ceiling, kind, order: options.order ?? 0 };
    await this.send(this.tags.createTag.bind(this.tags), { tag, validateOnly: false });
  }

  async createSequence(name: string, settings: Partial<SequenceKind> = {}): Promise<void> {
    const kind = { $case: "sequence", value: { ...SequenceKind.create(), ...settings } } as const;
    const tag = { ...Tag.create(), name, kind };
    await this.send(this.tags.createTag.bind(this.tags), { tag, validateOnly: false });
  }

  /** `layout`: by default, and where its unit or origin are left out, the server's. */
  async createSnowflake(
    name: string,
    layout?: Partial<SnowflakeLayout>,
    settings: Partial<Omit<SnowflakeKind, "layout">> = {},
  ): Promise<void> {
    const value = {
      ...SnowflakeKind.create(),
      ...settings,
      layout: layout === undefined ? undefined : { ...SnowflakeLayout.create(), ...layout },
    };
    const tag = { ...Tag.create(), name, kind: { $case: "snowflake", value } as const };
    await this.send(this.tags.createTag.bind(this.tags), { tag, validateOnly: false });
  }

  async getTag(name: string): Promise<Tag> {
    const { tag } = await this.send(this.tags.getTag.bind(this.tags), { name });
    if (tag === undefined) throw new Error(`an answer without the tag ${name}`);
    return tag;
  }

  /** Whether the server says that it takes calls. */
  async isServing(deadlineMs = 1_000): Promise<boolean> {
    const check = this.health.check.bind(this.health);
    const { status } = await this.send(check, { service: "" }, deadlineMs);
    return status === HealthCheckResponse_ServingStatus.SERVING;
  }

  [Symbol.dispose](): void {
    for (const client of [this.ids, this.tags, this.nodes, this.health]) client.close();
  }
}

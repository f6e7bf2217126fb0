import {
  type sendUnaryData,
  type ServerUnaryCall,
  type ServerWritableStream,
  status,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";
import {
  type HealthCheckRequest,
  type HealthCheckResponse,
  HealthCheckResponse_ServingStatus as ServingStatus,
  type HealthListResponse,
} from "@idmint/proto/health";

/** Watches that are open at once; each is one stream of one caller. */
const MAX_WATCHES = 1_000;

type Watch = ServerWritableStream<HealthCheckRequest, HealthCheckResponse>;

/** grpc.health.v1 for the server as a whole ("") and for each of its services. All of them share one state. */
export class Health {
  readonly #services: ReadonlySet<string>;
  readonly #watches = new Set<{ readonly call: Watch; readonly isKnown: boolean }>();
  #serving = false;

  constructor(services: readonly string[]) {
    this.#services = new Set(["", ...services]);
  }

  /** Tells watchers when it changes. */
  setServing(serving: boolean): void {
    if (serving === this.#serving) return;
    this.#serving = serving;
    for (const { call, isKnown } of this.#watches) if (isKnown) call.write(this.#response());
  }

  /** Ends all watches, so that connections can close. */
  close(): void {
    for (const { call } of this.#watches) call.end();
    this.#watches.clear();
  }

  implementation(): UntypedServiceImplementation {
    return {
      check: (
        call: ServerUnaryCall<HealthCheckRequest, HealthCheckResponse>,
        callback: sendUnaryData<HealthCheckResponse>,
      ) => {
        if (this.#services.has(call.request.service)) callback(null, this.#response());
        else callback({ code: status.NOT_FOUND, details: "unknown service" });
      },
      list: (
        _call: ServerUnaryCall<unknown, HealthListResponse>,
        callback: sendUnaryData<HealthListResponse>,
      ) => {
        const names = [...this.#services];
        callback(null, {
          statuses: Object.fromEntries(names.map((name) => [name, this.#response()])),
        });
      },
      watch: (call: Watch) => this.#watch(call),
    };
  }

  #watch(call: Watch): void {
    if (this.#watches.size >= MAX_WATCHES) {
      const error = { code: status.RESOURCE_EXHAUSTED, details: "too many watches" };
      call.emit("error", error);
      return;
    }
    const isKnown = this.#services.has(call.request.service);
    const watch = { call, isKnown };
    this.#watches.add(watch);
    const forget = (): void => {
      this.#watches.delete(watch);
    };
    call.on("cancelled", forget).on("close", forget).on("error", forget);
    // An unknown service may be known after an update, so the protocol keeps the stream open.
    call.write(isKnown ? this.#response() : { status: ServingStatus.SERVICE_UNKNOWN });
  }

  #response(): HealthCheckResponse {
    return { status: this.#serving ? ServingStatus.SERVING : ServingStatus.NOT_SERVING };
  }
}

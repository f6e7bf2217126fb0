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

/**
 * Serves as long as it can answer. An orchestrator that restarts what does not live must ask this name: a server that is
 * drained, overloaded or without its store does not serve, and a restart would take away the ids that it still has.
 */
const LIVENESS = "liveness";

/** Watches that are open at once; each is one stream of one caller. */
const MAX_WATCHES = 1_000;

type Watch = ServerWritableStream<HealthCheckRequest, HealthCheckResponse>;

/** grpc.health.v1 for the server as a whole ("") and for each of its services, which share one state, and for `liveness`. */
export class Health {
  readonly #services: ReadonlySet<string>;
  readonly #watches = new Set<{ readonly call: Watch; readonly service: string }>();
  #serving = false;

  constructor(services: readonly string[]) {
    this.#services = new Set(["", ...services, LIVENESS]);
  }

  /** Tells watchers when it changes. */
  setServing(serving: boolean): void {
    if (serving === this.#serving) return;
    this.#serving = serving;
    for (const { call, service } of this.#watches) {
      if (this.#services.has(service) && service !== LIVENESS) call.write(this.#of(service));
    }
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
        const { service } = call.request;
        if (this.#services.has(service)) callback(null, this.#of(service));
        else callback({ code: status.NOT_FOUND, details: "unknown service" });
      },
      list: (
        _call: ServerUnaryCall<unknown, HealthListResponse>,
        callback: sendUnaryData<HealthListResponse>,
      ) => {
        const names = [...this.#services];
        callback(null, {
          statuses: Object.fromEntries(names.map((name) => [name, this.#of(name)])),
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
    const { service } = call.request;
    const watch = { call, service };
    this.#watches.add(watch);
    const forget = (): void => {
      this.#watches.delete(watch);
    };
    call.on("cancelled", forget).on("close", forget).on("error", forget);
    // An unknown service may be known after an update, so the protocol keeps the stream open.
    const isKnown = this.#services.has(service);
    call.write(isKnown ? this.#of(service) : { status: ServingStatus.SERVICE_UNKNOWN });
  }

  #of(service: string): HealthCheckResponse {
    const serves = this.#serving || service === LIVENESS;
    return { status: serves ? ServingStatus.SERVING : ServingStatus.NOT_SERVING };
  }
}

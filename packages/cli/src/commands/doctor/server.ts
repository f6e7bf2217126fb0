import { type ClientDuplexStream, type ServiceError, status as codes } from "@grpc/grpc-js";
import { type GetNodeStatusResponse, nodeStateToJSON, NodeState, StoreState } from "@idmint/proto";
import { ServerReflectionClient } from "@idmint/proto/grpc-js";
import { HealthCheckResponse_ServingStatus as ServingStatus } from "@idmint/proto/health";
import { ServerReflectionRequest, type ServerReflectionResponse } from "@idmint/proto/reflection";
import { channelOf, type Send } from "../../calls/connection.ts";
import type { ConnectionSettings } from "../../flags/options.ts";
import { plain } from "../../process/plain.ts";
import { allWellOr, type Check, fail, type Finding, ok, warn } from "./checks.ts";

/** One server: whether it takes calls, and what it says about its store. */
export function serverChecks(
  send: Send,
  settings: ConnectionSettings,
  needs: readonly string[],
): readonly Check[] {
  const late = "the server took the connection and does not answer: look at its log and its load";
  return [
    {
      name: "health",
      needs,
      late,
      look: async () => {
        const { status } = await send(({ health }) => health.check.bind(health), { service: "" });
        const node = await send(({ nodes }) => nodes.getNodeStatus.bind(nodes), {});
        return healthFindings(status === ServingStatus.SERVING, node);
      },
    },
    {
      name: "server store",
      needs,
      late,
      look: async () =>
        storeFindings(await send(({ nodes }) => nodes.getNodeStatus.bind(nodes), {})),
    },
    { name: "reflection", needs, late, look: () => lookAtReflection(settings) },
  ];
}

export function healthFindings(
  isServing: boolean,
  { state, stateReason, stoppedTime, version, nodeId }: GetNodeStatusResponse,
): readonly Finding[] {
  if (stoppedTime !== undefined) {
    const fix = "idmint resume-issuing --all";
    return [fail(`an operator stopped all servers at ${stoppedTime.toISOString()}`, fix)];
  }
  if (state === NodeState.DRAINING) {
    const fix = `idmint node undrain ${plain(nodeId)}, unless it is on its way to stop`;
    return [fail("it is draining and wants no callers", fix)];
  }
  if (!isServing || state !== NodeState.SERVING) {
    const word = nodeStateToJSON(state).replace("NODE_STATE_", "");
    const fix = "see the line `server store`, and the server's log for its clock";
    const why = stateReason === "" ? "" : `: ${plain(stateReason)}`;
    return [fail(isServing ? `it is ${word}${why}` : `it is NOT_SERVING (${word})${why}`, fix)];
  }
  return [ok(`serving, version ${plain(version)}`)];
}

export function storeFindings({
  store,
  ticketDatabases,
}: GetNodeStatusResponse): readonly Finding[] {
  if (store === undefined) {
    return [warn("the server does not say how its store is", "see the server's log")];
  }
  const tickets = ticketDatabases
    .filter(({ state }) => state !== StoreState.GRANTING)
    .map(({ name, reason }) =>
      fail(
        `it takes no ids from ticket database ${plain(name)}: ${plain(reason)}`,
        "idmint ticket status",
      ),
    );
  const place = plain(store.place);
  return allWellOr(
    [
      store.state === StoreState.UNREACHABLE
        ? fail(
            `its store ${place} does not answer`,
            "start the database, or look at the way to it; then idmint store status on the server's machine",
          )
        : undefined,
      store.state === StoreState.FENCED
        ? fail(
            `its store refuses: ${plain(store.fenceReason)}`,
            "find out what happened to it, then idmint store accept --gap N (docs/restore.md)",
          )
        : undefined,
      ...tickets,
    ],
    `${place} grants, schema ${store.schemaVersion}`,
  );
}

const OFF_FIX =
  "only people with grpcurl need it: set `reflection: on`, ask at admin.address, or give them the .proto files";

function lookAtReflection(settings: ConnectionSettings): Promise<readonly Finding[]> {
  const client = new ServerReflectionClient(settings.address, ...channelOf(settings));
  const deadline = Date.now() + settings.timeoutMs;
  const { promise, resolve } = Promise.withResolvers<readonly Finding[]>();
  const stream: ClientDuplexStream<ServerReflectionRequest, ServerReflectionResponse> =
    client.serverReflectionInfo({ deadline });
  stream.once("error", ({ code, details }: ServiceError) => {
    resolve([
      code === codes.UNIMPLEMENTED
        ? warn("it is off", OFF_FIX)
        : warn(`it does not answer: ${plain(details)}`, OFF_FIX),
    ]);
  });
  stream.once("data", ({ messageResponse }: ServerReflectionResponse) => {
    const services =
      messageResponse?.$case === "listServicesResponse" ? messageResponse.value.service : [];
    const names = services.map(({ name }) => plain(name));
    const has = names.includes("idmint.v1.IdService");
    resolve([
      has ? ok(`${names.length} services`) : warn("idmint.v1.IdService is not listed", OFF_FIX),
    ]);
    stream.end();
  });
  const request = { $case: "listServices", value: "" } as const;
  stream.write(ServerReflectionRequest.create({ messageRequest: request }));
  return promise.finally(() => {
    client.close();
  });
}

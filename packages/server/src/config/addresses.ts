import { type Option, optional, option } from "./option.ts";
import { type Address, address, oneOf } from "./types.ts";

/** Where a server listens for gRPC, and what is served there. */
export interface AddressConfig {
  readonly grpcAddress: Address;
  readonly grpcDoor: "fast" | "grpc-js";
  readonly adminAddress: Address | undefined;
  readonly reflection: "on" | "off";
}

/** The options about addresses; a part of the table. */
export const ADDRESS_OPTIONS: { readonly [K in keyof AddressConfig]: Option<AddressConfig[K]> } = {
  grpcAddress: option(
    "grpc.address",
    address,
    "127.0.0.1:7600",
    "Where gRPC listens. An address that other machines can reach needs TLS, or `insecure`.",
  ),
  grpcDoor: option(
    "grpc.door",
    oneOf("fast", "grpc-js"),
    "fast",
    "What serves gRPC: `fast` is made for this server and takes several times as many calls; `grpc-js` is Node's usual library, for whoever wants to compare the two.",
  ),
  adminAddress: optional(
    "admin.address",
    address,
    "Where gRPC listens for administrators. If it is set, methods that need the role admin, and reflection, are served there only. Everything else is served at both addresses.",
  ),
  reflection: option(
    "reflection",
    oneOf("on", "off"),
    "on",
    "Whether gRPC reflection tells callers the API, at `admin.address` if that is set. It tells nothing of tags.",
  ),
};

import { type Option, optional, option } from "./option.ts";
import { type Address, address, addressOrNone, flag, oneOf } from "./types.ts";

/** Where a server listens, and what is served there. */
export interface AddressConfig {
  readonly grpcAddress: Address;
  readonly adminAddress: Address | undefined;
  readonly httpAddress: Address | "none";
  readonly httpLeaf: boolean;
  readonly httpTinyid: boolean;
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
  adminAddress: optional(
    "admin.address",
    address,
    "Where gRPC listens for administrators. If it is set, methods that need the role admin, and reflection, are served there only. Everything else is served at both addresses.",
  ),
  httpAddress: option(
    "http.address",
    addressOrNone,
    "127.0.0.1:7601",
    "Where the server answers /healthz, /readyz and /metrics, in plain HTTP; `none`: nowhere.",
  ),
  httpLeaf: option(
    "http.leaf",
    flag,
    "false",
    "Answers Leaf's paths at `http.address`, for services that call Leaf: /api/segment/get/TAG, /api/snowflake/get/TAG and /decodeSnowflakeId.",
  ),
  httpTinyid: option(
    "http.tinyid",
    flag,
    "false",
    "Answers Tinyid's paths at `http.address`, for its clients: /tinyid/id/nextId, nextIdSimple, nextSegmentId and nextSegmentIdSimple.",
  ),
  reflection: option(
    "reflection",
    oneOf("on", "off"),
    "on",
    "Whether gRPC reflection tells callers the API, at `admin.address` if that is set. It tells nothing of tags.",
  ),
};

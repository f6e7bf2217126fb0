// Bytes of connections that no client would send: the server answers or ends each, and goes on.
import { once } from "node:events";
import { connect } from "node:net";
import type { Dice } from "../../sim/world/random.ts";
import { mutatedStream } from "../draw/http2.ts";
import type { Target } from "../target.ts";
import type { World } from "../world.ts";

/** Hexadecimal digits of what is sent first, and of what follows. */
interface Input {
  readonly parts: readonly string[];
}

/** So many addresses connect in turns, since each has few ports and a closed connection keeps one for a minute. */
const ADDRESSES = 200;
const WITHIN_MS = 60_000;

function draw(dice: Dice): string {
  const bytes = mutatedStream(dice, "segment");
  const at = dice.int(0, bytes.length);
  const parts = [bytes.subarray(0, at), bytes.subarray(at)].map((part) => part.toString("hex"));
  return JSON.stringify({ parts } satisfies Input);
}

/** `patienceMs`: how long the server may keep a connection whose peer has ended its side; then its peer is gone altogether. */
export function http2Target(world: World, patienceMs: number): Target {
  const [host = "", port = ""] = world.grpcAddress.split(":");
  let sent = 0;
  return {
    draw,
    run: async (text) => {
      const [first = "", second = ""] = (JSON.parse(text) as Input).parts;
      const localAddress = `127.0.1.${1 + (sent++ % ADDRESSES)}`;
      const socket = connect({ host, port: Number(port), localAddress, noDelay: true });
      socket.on("error", () => undefined);
      socket.resume();
      const closed = once(socket, "close").catch(() => undefined);
      socket.write(Buffer.from(first, "hex"));
      socket.end(Buffer.from(second, "hex"));
      const timer = setTimeout(() => socket.destroy(), Math.min(patienceMs, WITHIN_MS));
      await closed;
      clearTimeout(timer);
      return undefined;
    },
    faults: world.faults,
    atOnce: 32,
    withinMs: WITHIN_MS,
    close: world.close,
  };
}

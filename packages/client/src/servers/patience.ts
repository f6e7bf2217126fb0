/**
 * When a request is given up that is worth waiting for.
 *
 * gRPC's own deadline is a timer, and timers run before what has come meanwhile is read. So a process that was busy for longer
 * than the deadline would throw away answers that lie in its sockets, ask for all of them again, and get nowhere. Here what has
 * come is read first. And a server that answers others is slow, not away: it gets as much time again, since a new request would
 * only stand behind the old one.
 *
 * INVARIANT: a request ends by twice its time; and by its time, or a quarter of it after the server's last word, whichever is
 * later.
 */
export class Patience {
  readonly #heardAtMs = new Map<string, number>();

  /** The endpoint answered something. */
  heard(endpoint: string): void {
    this.#heardAtMs.set(endpoint, performance.now());
  }

  forget(endpoint: string): void {
    this.#heardAtMs.delete(endpoint);
  }

  /** Watches a request that is sent now; what it answers stops that. */
  watch(endpoint: string, timeoutMs: number, giveUp: () => void): () => void {
    const sentAtMs = performance.now();
    let isOver = false;
    let timer: NodeJS.Timeout | undefined;
    const look = (): void => {
      if (isOver) return;
      const nowMs = performance.now();
      const silentMs = nowMs - (this.#heardAtMs.get(endpoint) ?? -Infinity);
      const isAlive = silentMs < timeoutMs / 4 && nowMs - sentAtMs < 2 * timeoutMs;
      if (isAlive) wait(timeoutMs / 4);
      else giveUp();
    };
    const wait = (ms: number): void => {
      // Sockets are read between timers and this.
      timer = setTimeout(() => setImmediate(look), ms);
    };
    wait(timeoutMs);
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }
}

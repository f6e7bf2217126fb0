import { readFileSync } from "node:fs";

/** What the system says of a process. */
interface ProcessInfo {
  readonly parent: number;
  /** All processes that one terminal or one service started share a session. */
  readonly session: number;
  /** Whether a script of a package manager started it. */
  readonly isOfScript: boolean;
}

/** Looks a process up; undefined when it has ended. */
export type ProcessTable = (pid: number) => ProcessInfo | undefined;

/** A process and its parent, as they were when the server started. */
export interface Link {
  readonly child: number;
  readonly parent: number;
}

/** npx, a shell, pnpm and another shell are four links. */
const MAX_LINKS = 32;
const LOOK_MS = 500;

/**
 * The links from a process up to the one that was typed (`npx …`, `pnpm start`). There are none when no script started
 * the process, and undefined is answered when the script has ended already. A process that leads a session of its own
 * (setsid) was detached on purpose, so the links end there.
 */
export function scriptLinks(self: number, table: ProcessTable): readonly Link[] | undefined {
  const links: Link[] = [];
  let child = self;
  while (links.length < MAX_LINKS) {
    const info = table(child);
    if (info === undefined) return undefined;
    if (!info.isOfScript || info.session === child) break;
    // The parent is in the same session, unless it ended and the system gave this process another parent.
    if (table(info.parent)?.session !== info.session) return undefined;
    links.push({ child, parent: info.parent });
    child = info.parent;
  }
  return links;
}

/**
 * Whether every process of the links still has its parent. The system gives a process another parent when its own ends.
 */
export function areWhole(links: readonly Link[], table: ProcessTable): boolean {
  return links.every(({ child, parent }) => table(child)?.parent === parent);
}

/** The script that started this process. */
export interface Script {
  /** Fulfils when the script has ended. */
  readonly ended: Promise<void>;
  /** Stops watching. */
  stop(): void;
}

/**
 * Watches the script that started this process; undefined when none did. A package manager that is told to stop does
 * not always pass that on: `npx pnpm start` leaves a server behind that nobody sees and that keeps its port.
 */
export function watchScript(
  self: number = process.pid,
  table: ProcessTable = systemTable(),
): Script | undefined {
  const links = scriptLinks(self, table);
  if (links === undefined) return { ended: Promise.resolve(), stop: () => undefined };
  if (links.length === 0) return undefined;
  const over = Promise.withResolvers<void>();
  const looking = setInterval(() => {
    if (areWhole(links, table)) return;
    clearInterval(looking);
    over.resolve();
  }, LOOK_MS);
  looking.unref();
  return { ended: over.promise, stop: () => clearInterval(looking) };
}

function systemTable(): ProcessTable {
  return process.platform === "linux" ? linuxTable : ownParentOnly;
}

/**
 * Without /proc only this process's own parent is known. That is enough when a package manager runs it without a shell.
 */
function ownParentOnly(pid: number): ProcessInfo | undefined {
  const isOfScript = pid === process.pid && process.env["npm_lifecycle_event"] !== undefined;
  return { parent: pid === process.pid ? process.ppid : 0, session: 0, isOfScript };
}

function linuxTable(pid: number): ProcessInfo | undefined {
  const stat = readProc(pid, "stat");
  if (stat === undefined) return undefined;
  // The line is: pid (name) state parent group session …. The name may hold anything.
  const [, parent, , session] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  // The environment of another user's process cannot be read. Such a process is not the script's.
  const environment = readProc(pid, "environ") ?? "";
  const isOfScript = `\0${environment}`.includes("\0npm_lifecycle_event=");
  return { parent: Number(parent), session: Number(session), isOfScript };
}

function readProc(pid: number, name: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${name}`, "latin1");
  } catch {
    return undefined;
  }
}

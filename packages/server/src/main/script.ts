import { readFileSync } from "node:fs";

/** What is known of a process. */
interface ProcessInfo {
  readonly parent: number;
  /** Processes that were started by one terminal or by one service share it. */
  readonly session: number;
  /** Whether a script of a package manager started it. */
  readonly isOfScript: boolean;
}

/** Looks a process up; undefined when it has ended. */
export type ProcessTable = (pid: number) => ProcessInfo | undefined;

/** One process and its parent, as they were when the server started. */
export interface Link {
  readonly child: number;
  readonly parent: number;
}

/** npx, a shell, pnpm and another shell are four. */
const MAX_LINKS = 32;
const LOOK_MS = 500;

/**
 * The links from a process up to the one that was typed (`npx …`, `pnpm start`): none when no script started the
 * process, undefined when the script has ended already. A process that leads a session of its own (setsid) was detached
 * on purpose, so the links end there.
 */
export function scriptLinks(self: number, table: ProcessTable): readonly Link[] | undefined {
  const links: Link[] = [];
  let child = self;
  while (links.length < MAX_LINKS) {
    const info = table(child);
    if (info === undefined) return undefined;
    if (!info.isOfScript || info.session === child) break;
    // Whoever started this process is of the same session, unless it ended and the system gave the process away.
    if (table(info.parent)?.session !== info.session) return undefined;
    links.push({ child, parent: info.parent });
    child = info.parent;
  }
  return links;
}

/** Whether every process of the links still has its parent. The system gives a process another one when it ends. */
export function areWhole(links: readonly Link[], table: ProcessTable): boolean {
  return links.every(({ child, parent }) => table(child)?.parent === parent);
}

/** The script that started this process. */
export interface Script {
  /** Fulfils when the script has ended. */
  readonly ended: Promise<void>;
  /** Stops looking. */
  stop(): void;
}

/**
 * Watches the script that started this process; undefined when none did. A package manager that is told to stop does not
 * always tell what it started: `npx pnpm start` leaves a server behind that nobody sees and that keeps its port.
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

/** Elsewhere only this process's own parent is known, which is enough when a package manager runs it without a shell. */
function ownParentOnly(pid: number): ProcessInfo | undefined {
  const isOfScript = pid === process.pid && process.env["npm_lifecycle_event"] !== undefined;
  return { parent: pid === process.pid ? process.ppid : 0, session: 0, isOfScript };
}

function linuxTable(pid: number): ProcessInfo | undefined {
  const stat = readProc(pid, "stat");
  if (stat === undefined) return undefined;
  // pid (name) state parent group session …; a name may hold anything.
  const [, parent, , session] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  // Of other users' processes the environment cannot be read, and then it is none of ours.
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

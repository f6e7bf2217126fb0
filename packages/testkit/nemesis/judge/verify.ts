// `idmint verify` over the histories of a site, the floors of its store and its ledger.
import { Child } from "../../src/fleet/child.ts";
import { CLI } from "../../src/program.ts";

const VERIFY_MS = 600_000;
/** Exit code of a store or a history with a fault. */
const EXIT_UNHEALTHY = 5;

export interface Verified {
  readonly ids: bigint;
  readonly rows: number;
  /** One line for each, by what is wrong. */
  readonly repeats: readonly string[];
  readonly aboveFloor: readonly string[];
  readonly ledger: readonly string[];
}

interface Fault {
  readonly tag: string;
  readonly kind: string;
  readonly first: string;
  readonly last: string;
}

interface Answer {
  readonly ids: string;
  readonly rows: number;
  readonly faults: readonly (Fault & { readonly holders: readonly unknown[] })[];
  readonly ledgers: readonly { readonly tag: string; readonly faults: readonly Fault[] }[] | null;
}

export async function verify(
  files: readonly string[],
  {
    address,
    storeUrl,
    hasLedger,
  }: { readonly address: string; readonly storeUrl: string; readonly hasLedger: boolean },
): Promise<Verified> {
  const ledger = hasLedger ? ["--ledger"] : [];
  const words = ["verify", "--json", "--address", address, ...ledger, ...files];
  const env = { IDMINT_STORE_URL: storeUrl };
  const child = new Child(CLI, words, { name: "idmint verify", env });
  const { code } = await child.waitForEnd(VERIFY_MS);
  if (code !== 0 && code !== EXIT_UNHEALTHY) throw new Error(child.describe());
  const { ids, rows, faults, ledgers } = JSON.parse(child.stdout) as Answer;
  const linesOf = (kind: string): readonly string[] =>
    faults
      .filter((fault) => fault.kind === kind)
      .map((fault) => `${lineOf(fault)} ${JSON.stringify(fault.holders)}`);
  return {
    ids: BigInt(ids),
    rows,
    repeats: linesOf("overlap"),
    aboveFloor: linesOf("above the floor"),
    ledger: (ledgers ?? []).flatMap(({ tag, faults: its }) =>
      its.map((fault) => lineOf({ ...fault, tag })),
    ),
  };
}

function lineOf({ tag, kind, first, last }: Fault): string {
  return `${tag}: ${first} to ${last} ${kind}`;
}

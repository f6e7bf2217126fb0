import type { MigrationReport, StoreStatus } from "@idmint/server";
import { plain } from "../../process/plain.ts";
import { columns } from "../../text/table.ts";

/** What `idmint migrate` did, or would do. */
export function migrationText(report: MigrationReport, isDryRun: boolean): string {
  const { from, to, steps, created } = report;
  if (steps.length === 0) return `schema ${to} is up to date\n`;
  const done = isDryRun ? "would be applied" : "applied";
  const rows = steps.map(({ number, name, worksFrom }) => [
    `  ${number}`,
    plain(name),
    done,
    ...(from === 0 ? [] : [servingText(number, worksFrom)]),
  ]);
  const verb = isDryRun ? "would go" : "went";
  const made = created ? (isDryRun ? ", in a new store" : ", in a store made for it") : "";
  return `the schema ${verb} from ${from} to ${to}${made}\n${columns(rows)}`;
}

/** Which servers may run while a step is applied, and afterwards. */
function servingText(number: number, worksFrom: number): string {
  return worksFrom < number
    ? `servers of schema ${worksFrom} and later go on`
    : "stop all older servers first";
}

/** What `idmint migrate` did, or would do, for scripts. */
export function migrationJson(
  report: MigrationReport,
  isDryRun: boolean,
): Readonly<Record<string, unknown>> {
  const { from, to, steps, created, warnings } = report;
  return {
    ...(warnings === undefined || warnings.length === 0 ? {} : { warnings }),
    from,
    to,
    created,
    dryRun: isDryRun,
    steps: steps.map(({ number, name, worksFrom }) => ({ number, name, worksFrom })),
  };
}

/** What `idmint store status` shows. */
export function storeStatusText(status: StoreStatus): string {
  const { fenced, schemaIllness, findings = [], refusedTags = "", unsafe, stoppedTime } = status;
  const fatal = findings.find(({ isFatal }) => isFatal)?.found ?? "";
  const why = fenced || schemaIllness || fatal;
  const grants = why === "" ? `yes, but not of ${plain(refusedTags)}` : `no: ${plain(why)}`;
  return columns([
    ["store", status.backend],
    [
      "schema version",
      `${status.schemaVersion} (this release is of schema ${status.knownSchemaVersion})`,
    ],
    ["store id", plain(status.storeId)],
    ["incarnation", plain(status.incarnation)],
    ["revision", String(status.revision)],
    ["tags", String(status.tags)],
    ["accepted identity", plain(status.acceptedIdentity)],
    ["present identity", plain(status.presentIdentity)],
    ...(status.backend === "postgres"
      ? [["standbys", plain(status.standbys) || "none that all answers wait for"]]
      : []),
    ...(status.members ?? []).map((trouble) => ["member", plain(trouble)]),
    ...findings.map(({ found, fix }) => ["database", `${plain(found)}; ${fix}`]),
    ["unsafe settings", unsafe.length === 0 ? "none" : unsafe.join(", ")],
    ...(stoppedTime === ""
      ? []
      : [["servers are stopped", `since ${stoppedTime}; resumed by: idmint resume-issuing --all`]]),
    ["grants", storeIllness(status) === undefined ? "yes" : grants],
  ]);
}

/** Why a server cannot use a store, in words; undefined when it can. */
export function storeIllness(status: StoreStatus): string | undefined {
  const { schemaIllness, fenced, findings = [], refusedTags = "" } = status;
  if (schemaIllness !== "") return plain(schemaIllness);
  if (fenced !== "") return `it grants nothing: ${plain(fenced)}; see idmint store accept`;
  const fatal = findings.find(({ isFatal }) => isFatal);
  if (fatal !== undefined) return `${plain(fatal.found)}; ${fatal.fix}`;
  if (refusedTags === "") return undefined;
  return `it grants nothing of ${plain(refusedTags)}; see idmint store accept`;
}

import type { JSX } from "preact";
import { call } from "../../api/client.ts";
import { Badge, type BadgeTone } from "../../parts/badge.tsx";
import { CliLine } from "../../parts/cli-line.tsx";
import { TextField } from "../../parts/field.tsx";
import { Loaded } from "../../parts/loaded.tsx";
import { PageView, Section } from "../../parts/page.tsx";
import { Pager } from "../../parts/pager.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { setQuery } from "../../state/location.ts";
import { usePoll } from "../../state/polling.ts";
import { timeText } from "../../text/format.ts";
import { t } from "../../text/text.ts";
import type { PageProps } from "../page.ts";
import { workersLine } from "./cli-lines.ts";
import {
  centersOf,
  type LeaseState,
  leaseStateOf,
  type Worker,
  workerIdOf,
} from "./workers-state.ts";

const PAGE_SIZE = 100;
const EVERY_MS = 5_000;

const TONES: Readonly<Record<LeaseState, BadgeTone>> = {
  leased: "good",
  reserved: "warn",
  free: "idle",
};

/** The worker ids of one tag that were ever leased, and who has them. */
export function Leases({ params, query }: PageProps): JSX.Element {
  const { tag = "" } = params;
  const { worker: typed = "", page: pageToken = "" } = query;
  const workerId = workerIdOf(typed);
  const isWrong = typed !== "" && workerId === undefined;
  const poll = usePoll(
    `workers ${tag} ${workerId} ${pageToken}`,
    (signal) =>
      call(
        "WorkerService",
        "listWorkers",
        { tag, workerId, pageSize: PAGE_SIZE, pageToken },
        { signal },
      ),
    { everyMs: EVERY_MS },
  );
  return (
    <PageView title={t("workers.of", { tag })}>
      <div class="filters">
        <TextField
          label={t("workers.worker_id")}
          inputMode="numeric"
          value={typed}
          error={isWrong ? t("workers.not_an_id") : undefined}
          onInput={(worker) => setQuery({ worker, page: undefined })}
        />
      </div>
      <Loaded poll={poll}>
        {({ workers, nextPageToken }) => (
          <>
            {workers.length === 0 && <div class="empty">{t("workers.no_leases")}</div>}
            {centersOf(workers).map(({ dataCenter, workers: its }) => (
              <Center key={dataCenter} dataCenter={dataCenter} workers={its} />
            ))}
            <Pager label={t("workers.of", { tag })} page={pageToken} next={nextPageToken} />
          </>
        )}
      </Loaded>
      <CliLine line={workersLine(tag)} />
    </PageView>
  );
}

function Center({
  dataCenter,
  workers,
}: {
  readonly dataCenter: number;
  readonly workers: readonly Worker[];
}): JSX.Element {
  const title = t("workers.data_center", { number: dataCenter });
  return (
    <Section title={title}>
      <Table
        caption={title}
        columns={columnsOf()}
        rows={workers}
        keyOf={({ workerId }) => String(workerId)}
        empty=""
      />
    </Section>
  );
}

function columnsOf(): readonly Column<Worker>[] {
  const now = Date.now();
  return [
    { title: t("workers.worker"), isHead: true, cell: ({ workerId }) => String(workerId) },
    {
      title: t("workers.lease"),
      cell: (worker) => {
        const state = leaseStateOf(worker, now);
        return <Badge tone={TONES[state]}>{t(`workers.${state}`)}</Badge>;
      },
    },
    {
      title: t("workers.instance"),
      cell: ({ instance }) => <span class="foreign">{instance}</span>,
    },
    { title: t("workers.extension"), isNumber: true, cell: ({ extension }) => String(extension) },
    {
      title: t("workers.reserved_until"),
      cell: ({ reservedUntilTime }) => timeText(reservedUntilTime ?? ""),
    },
    { title: t("workers.expires"), cell: ({ expireTime }) => timeText(expireTime ?? "") },
  ];
}

import type { JSX } from "preact";
import { call } from "../../api/client.ts";
import { CliLine } from "../../parts/cli-line.tsx";
import { Loaded } from "../../parts/loaded.tsx";
import { Section } from "../../parts/page.tsx";
import { Table } from "../../parts/table.tsx";
import { usePoll } from "../../state/polling.ts";
import { cliLine } from "../../text/cli.ts";
import { timeText } from "../../text/format.ts";
import { t } from "../../text/text.ts";
import { Pager } from "../../parts/pager.tsx";
import { Id } from "./tags.tsx";

const EVERY_MS = 10_000;
const PAGE_SIZE = 50;

/** The ended periods of a sequence. */
export function Periods({
  tag,
  page,
}: {
  readonly tag: string;
  readonly page: string;
}): JSX.Element {
  const request = { name: tag, pageSize: PAGE_SIZE, pageToken: page };
  const poll = usePoll(
    JSON.stringify(request),
    (signal) => call("TagService", "listPeriods", request, { signal }),
    { everyMs: EVERY_MS },
  );
  return (
    <Section title={t("periods.title")}>
      <Loaded poll={poll}>
        {({ periods, nextPageToken }) => (
          <>
            <Table
              caption={t("periods.title")}
              columns={[
                { title: t("periods.period"), isHead: true, cell: ({ period }) => period },
                {
                  title: t("periods.last"),
                  isNumber: true,
                  cell: ({ lastId }) => <Id text={lastId} />,
                },
                { title: t("periods.ended"), cell: ({ endTime }) => timeText(endTime ?? "") },
              ]}
              rows={periods}
              keyOf={({ period }) => period}
              empty={t("periods.none")}
            />
            <Pager label={t("periods.title")} page={page} next={nextPageToken} />
          </>
        )}
      </Loaded>
      <CliLine line={cliLine(["tag", "periods", tag])} />
    </Section>
  );
}

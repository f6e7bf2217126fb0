import type { JSX } from "preact";
import { call } from "../../api/client.ts";
import { CliLine } from "../../parts/cli-line.tsx";
import { TextField } from "../../parts/field.tsx";
import { Loaded } from "../../parts/loaded.tsx";
import { PageView, Section } from "../../parts/page.tsx";
import { Pager } from "../../parts/pager.tsx";
import { Table } from "../../parts/table.tsx";
import { setQuery } from "../../state/location.ts";
import { usePoll } from "../../state/polling.ts";
import { hrefOf } from "../../state/route-state.ts";
import { t } from "../../text/text.ts";
import type { PageProps } from "../page.ts";
import { tagsLine } from "./cli-lines.ts";
import { leasing, type Tag } from "./workers-state.ts";

/** As many tags as one answer may have: few of them may be of a kind that leases. */
const PAGE_SIZE = 1_000;
const EVERY_MS = 15_000;

/** The tags whose worker ids are leased. */
export function Workers({ query }: PageProps): JSX.Element {
  const { prefix = "", page: pageToken = "" } = query;
  const poll = usePoll(
    `leasing ${prefix} ${pageToken}`,
    (signal) =>
      call("TagService", "listTags", { prefix, pageSize: PAGE_SIZE, pageToken }, { signal }),
    { everyMs: EVERY_MS },
  );
  return (
    <PageView title={t("workers.title")}>
      <div class="filters">
        <TextField
          label={t("workers.prefix")}
          type="search"
          value={prefix}
          onInput={(typed) => setQuery({ prefix: typed, page: undefined })}
        />
      </div>
      <Loaded poll={poll}>
        {({ tags, nextPageToken }) => (
          <Section title={t("workers.tags")}>
            <TagTable tags={leasing(tags)} hasMore={nextPageToken !== ""} />
            <Pager label={t("workers.tags")} page={pageToken} next={nextPageToken} />
          </Section>
        )}
      </Loaded>
      <CliLine line={tagsLine(prefix)} />
    </PageView>
  );
}

function TagTable({
  tags,
  hasMore,
}: {
  readonly tags: readonly Tag[];
  readonly hasMore: boolean;
}): JSX.Element {
  return (
    <Table
      caption={t("workers.tags")}
      columns={[
        {
          title: t("workers.tag"),
          isHead: true,
          cell: ({ name }) => <a href={hrefOf("workers/:tag", { tag: name })}>{name}</a>,
        },
        {
          title: t("workers.registry"),
          cell: ({ snowflake }) =>
            snowflake?.registry === "WORKER_REGISTRY_REDIS"
              ? t("workers.in_redis", { server: snowflake.redisServer })
              : t("workers.in_store"),
        },
        {
          title: t("workers.description"),
          cell: ({ description }) => <span class="foreign">{description}</span>,
        },
      ]}
      rows={tags}
      keyOf={({ name }) => name}
      empty={hasMore ? t("workers.none_here") : t("workers.none")}
    />
  );
}

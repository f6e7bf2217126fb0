import type { JSX } from "preact";
import { wordOf } from "@idmint/core/kinds";
import { call } from "../../api/client.ts";
import { Badge, type BadgeTone } from "../../parts/badge.tsx";
import { CliLine } from "../../parts/cli-line.tsx";
import { CheckField, TextField } from "../../parts/field.tsx";
import { Loaded } from "../../parts/loaded.tsx";
import { PageView } from "../../parts/page.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { setQuery } from "../../state/location.ts";
import { usePoll } from "../../state/polling.ts";
import { hrefOf } from "../../state/route-state.ts";
import { whoAmI } from "../../state/sign-in.ts";
import { cliLine } from "../../text/cli.ts";
import { timeText } from "../../text/format.ts";
import { t, tOr } from "../../text/text.ts";
import type { PageProps } from "../page.ts";
import { highestIdOf, kindOf, type TagJson } from "./model/tag-values.ts";
import { Pager } from "../../parts/pager.tsx";

const PAGE_SIZE = 50;
const EVERY_MS = 5_000;

/** All tags, or those whose names begin like what is typed. */
export function Tags({ query }: PageProps): JSX.Element {
  const { q: prefix = "", deleted = "", page = "" } = query;
  const showDeleted = deleted === "yes";
  const canCreate = whoAmI.value?.rights.some(({ role }) => role === "admin") === true;
  return (
    <PageView
      title={t("tags.title")}
      actions={
        canCreate && (
          <a class="button main" href={hrefOf("new-tag")}>
            {t("tags.new")}
          </a>
        )
      }
    >
      <div class="filters">
        <TextField
          label={t("tags.prefix")}
          type="search"
          value={prefix}
          maxLength={128}
          onInput={(q) => setQuery({ q, page: undefined })}
        />
        <CheckField
          label={t("tags.deleted")}
          isChecked={showDeleted}
          onChange={(isOn) => setQuery({ deleted: isOn ? "yes" : undefined, page: undefined })}
        />
      </div>
      {mayList(prefix) ? (
        <TagList prefix={prefix} showDeleted={showDeleted} page={page} />
      ) : (
        <OwnNames />
      )}
      <CliLine line={cliLine(["tag", "list"], { prefix, "show-deleted": showDeleted })} />
    </PageView>
  );
}

/** Whether the caller may look at all tags whose names begin so. The server decides; this only chooses what is shown. */
function mayList(prefix: string): boolean {
  // Until it is known who calls, the list itself says what is the matter.
  if (whoAmI.value === undefined) return true;
  return whoAmI.value.rights.some(
    ({ role, tags }) =>
      role !== "issue" && tags.endsWith("*") && prefix.startsWith(tags.slice(0, -1)),
  );
}

/** What a caller may look at who may not look at everything. */
function OwnNames(): JSX.Element {
  const rights = whoAmI.value?.rights.filter(({ role }) => role !== "issue") ?? [];
  return (
    <div class="empty">
      <p>{t("common.not_allowed.text", { role: "observe", tags: t("common.all_tags") })}</p>
      {rights.length > 0 && (
        <>
          <p>{t("tags.yours")}</p>
          <ul class="links">
            {rights.map(({ tags }) => (
              <li key={tags}>
                <a
                  href={
                    tags.endsWith("*")
                      ? hrefOf("tags", {}, { q: tags.slice(0, -1) })
                      : hrefOf("tags/:tag", { tag: tags })
                  }
                >
                  {tags}
                </a>
              </li>
            ))}
          </ul>
        </>
      )}
    </div>
  );
}

interface ListProps {
  readonly prefix: string;
  readonly showDeleted: boolean;
  readonly page: string;
}

function TagList({ prefix, showDeleted, page }: ListProps): JSX.Element {
  const request = { prefix, showDeleted, pageToken: page, pageSize: PAGE_SIZE };
  const poll = usePoll(
    JSON.stringify(request),
    (signal) => call("TagService", "listTags", request, { signal }),
    { everyMs: EVERY_MS },
  );
  return (
    <Loaded poll={poll}>
      {({ tags, unreachable, nextPageToken }) => (
        <>
          {unreachable.length > 0 && (
            <p class="notice bad foreign">
              {t("tags.unreachable", { names: unreachable.join(", ") })}
            </p>
          )}
          <Table
            caption={t("tags.caption")}
            columns={columns()}
            rows={tags}
            keyOf={({ name }) => name}
            empty={prefix === "" ? t("tags.none") : t("tags.none_here")}
          />
          <Pager label={t("tags.caption")} page={page} next={nextPageToken} />
        </>
      )}
    </Loaded>
  );
}

function columns(): readonly Column<TagJson>[] {
  return [
    {
      title: t("tags.name"),
      isHead: true,
      cell: ({ name }) => (
        <a class="foreign" href={hrefOf("tags/:tag", { tag: name })}>
          {name}
        </a>
      ),
    },
    { title: t("tags.kind"), cell: (tag) => wordOf(kindOf(tag) ?? "unknown") },
    { title: t("tags.state"), cell: ({ state }) => <TagBadge state={state} /> },
    {
      title: t("tags.floor"),
      isNumber: true,
      cell: (tag) => <Id text={highestIdOf(tag) ?? t("common.none")} />,
    },
    {
      title: t("tags.description"),
      cell: ({ description }) =>
        description === "" ? t("common.none") : <span class="foreign short">{description}</span>,
    },
    { title: t("tags.updated"), cell: ({ updateTime }) => timeText(updateTime ?? "") },
  ];
}

const TONES: Readonly<Record<string, BadgeTone>> = {
  TAG_STATE_ACTIVE: "good",
  TAG_STATE_PAUSED: "warn",
  TAG_STATE_DELETED: "bad",
};

export function TagBadge({ state }: { readonly state: string }): JSX.Element {
  return <Badge tone={TONES[state] ?? "idle"}>{tOr("tag_state", state)}</Badge>;
}

/** An id or a bound of ids: text to the last digit. */
export function Id({ text }: { readonly text: string }): JSX.Element {
  return <span class="mono">{text}</span>;
}

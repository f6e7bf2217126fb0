import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { call } from "../../api/client.ts";
import { Badge, type BadgeTone } from "../../parts/badge.tsx";
import { Button } from "../../parts/button.tsx";
import { CliLine } from "../../parts/cli-line.tsx";
import { TextField } from "../../parts/field.tsx";
import { Loaded } from "../../parts/loaded.tsx";
import { PageView } from "../../parts/page.tsx";
import { Pager } from "../../parts/pager.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { setQuery } from "../../state/location.ts";
import { type Poll, usePoll } from "../../state/polling.ts";
import { token as sessionToken } from "../../state/session.ts";
import { may, signOut } from "../../state/sign-in.ts";
import { cliLine } from "../../text/cli.ts";
import { timeText } from "../../text/format.ts";
import { t } from "../../text/text.ts";
import type { PageProps } from "../page.ts";
import { type Expiry, idOfToken } from "./expiry.ts";
import { type Answer, type Listed, listedOf } from "./listed.ts";
import { MakeDialog } from "./make-dialog.tsx";
import { RevokeDialog } from "./revoke-dialog.tsx";
import type { TypedRight } from "./token-form.ts";
import "./tokens.css";

/** Said as long as the console is open: a toast would be gone before the time is. */
const lastRevoked = signal<{ readonly id: string; readonly time: string } | undefined>(undefined);

/** All of most stores on one page, so that they can be searched. */
const PAGE_SIZE = 1_000;
const EVERY_MS = 5_000;
const TONES: Readonly<Record<Expiry, BadgeTone>> = { valid: "good", soon: "warn", expired: "idle" };

/** The tokens. The URL has the search, the page, and which dialog is open: `make`, or `revoke` with the token's id. */
export function Tokens({ query }: PageProps): JSX.Element {
  const page = query["page"] ?? "";
  const answer = usePoll(
    `tokens ${page}`,
    (signal) =>
      call("AccessService", "listTokens", { pageSize: PAGE_SIZE, pageToken: page }, { signal }),
    { everyMs: EVERY_MS },
  );
  return (
    <PageView
      title={t("tokens.title")}
      actions={
        may("admin") && (
          <Button look="main" onClick={() => setQuery({ make: "new" }, {})}>
            {t("tokens.new")}
          </Button>
        )
      }
    >
      <p>{t("tokens.about")}</p>
      <Revoked />
      <Loaded poll={answer}>{(data) => <List answer={data} query={query} poll={answer} />}</Loaded>
      <CliLine line={cliLine(["token", "list"])} />
    </PageView>
  );
}

function List({
  answer,
  query,
  poll,
}: {
  readonly answer: Answer;
  readonly query: Readonly<Record<string, string>>;
  readonly poll: Poll<Answer>;
}): JSX.Element {
  const all = listedOf(answer, Date.now());
  const search = (query["q"] ?? "").trim();
  const found = all.filter(({ principal }) => principal.includes(search));
  const soon = found.filter(({ expiry }) => expiry === "soon").length;
  return (
    <>
      <div class="token-search">
        <TextField
          label={t("tokens.search")}
          type="search"
          value={query["q"] ?? ""}
          maxLength={128}
          onInput={(q) => setQuery({ q })}
        />
      </div>
      {soon > 0 && <p class="stale">{t("tokens.soon", { count: soon })}</p>}
      <Table
        caption={t("tokens.caption")}
        columns={columns()}
        rows={found}
        keyOf={({ tokenId }) => tokenId}
        empty={t(all.length === 0 ? "tokens.empty" : "tokens.none_found")}
      />
      <Pager label={t("tokens.caption")} page={query["page"] ?? ""} next={answer.nextPageToken} />
      <Dialogs all={all} query={query} refresh={poll.refresh} />
    </>
  );
}

function close(): void {
  setQuery({ make: undefined, revoke: undefined });
}

/** `make` is `new`, or the id of a token that the new one is to replace. */
function Dialogs({
  all,
  query: { make, revoke },
  refresh,
}: {
  readonly all: readonly Listed[];
  readonly query: Readonly<Record<string, string>>;
  readonly refresh: () => void;
}): JSX.Element | null {
  const revoked = all.find(({ tokenId }) => tokenId === revoke);
  const old = all.find(({ tokenId }) => tokenId === make);
  if (!may("admin")) return null;
  if (make !== undefined) {
    return <MakeDialog key={make} old={old} onMade={refresh} onClose={close} />;
  }
  if (revoked === undefined) return null;
  const { tokenId: id } = revoked;
  const isOwn = id === idOfToken(sessionToken.value);
  return (
    <RevokeDialog
      key={revoke}
      token={revoked}
      isOwn={isOwn}
      onRevoked={(time) => {
        lastRevoked.value = { id, time };
        if (isOwn) signOut();
        else refresh();
      }}
      onClose={close}
    />
  );
}

/** From when on the token that was revoked last is worthless. */
function Revoked(): JSX.Element {
  const { id, time } = lastRevoked.value ?? {};
  return (
    <div role="status">
      {id !== undefined && time !== undefined && (
        <p class="notice">
          {t("tokens.revoked", { id })} {t("tokens.revoked.text", { time: timeText(time) })}
        </p>
      )}
    </div>
  );
}

function columns(): readonly Column<Listed>[] {
  return [
    {
      title: t("tokens.principal"),
      cell: ({ principal }) => <bdi>{principal}</bdi>,
      isHead: true,
    },
    { title: t("tokens.rights"), cell: ({ rights }) => <Rights rights={rights} /> },
    { title: t("tokens.id"), cell: ({ tokenId }) => <Id id={tokenId} /> },
    { title: t("tokens.created"), cell: ({ createdAtMs }) => timeText(createdAtMs) },
    { title: t("tokens.expires"), cell: ({ expiresAtMs }) => timeText(expiresAtMs) },
    {
      title: t("tokens.state"),
      cell: ({ expiry }) => <Badge tone={TONES[expiry]}>{t(`tokens.state.${expiry}`)}</Badge>,
    },
    { title: t("tokens.actions"), cell: (token) => <Actions token={token} /> },
  ];
}

function Rights({ rights }: { readonly rights: readonly TypedRight[] }): JSX.Element {
  return (
    <ul class="token-rights">
      {rights.map(({ role, tags }) => (
        <li key={`${role} ${tags}`}>
          {role} <code>{tags}</code>
        </li>
      ))}
    </ul>
  );
}

function Id({ id }: { readonly id: string }): JSX.Element {
  return (
    <>
      <code>{id}</code>
      {id === idOfToken(sessionToken.value) && <p class="field-help">{t("tokens.this_session")}</p>}
    </>
  );
}

/** Who may not revoke sees none of it. */
function Actions({
  token: { tokenId: id, principal, expiry },
}: {
  readonly token: Listed;
}): JSX.Element | null {
  if (!may("admin")) return null;
  return (
    <div class="row-actions">
      {expiry !== "expired" && (
        <Button
          label={t("tokens.replace.of", { id, principal })}
          onClick={() => setQuery({ make: id }, {})}
        >
          {t("tokens.replace")}
        </Button>
      )}
      <Button
        look="danger"
        label={t("tokens.revoke.of", { id, principal })}
        onClick={() => setQuery({ revoke: id }, {})}
      >
        {t("tokens.revoke")}
      </Button>
    </div>
  );
}

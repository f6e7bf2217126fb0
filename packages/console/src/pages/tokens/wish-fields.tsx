import type { JSX } from "preact";
import { Button } from "../../parts/button.tsx";
import { SelectField, TextField } from "../../parts/field.tsx";
import { t } from "../../text/text.ts";
import { MAX_RIGHTS, type Role, ROLES, type Wish } from "./wish.ts";

interface WishProps {
  readonly wish: Wish;
  /** Paths of fields. */
  readonly problems: readonly string[];
  readonly onChange: (wish: Wish) => void;
}

/** The fields of a token that is to be made. */
export function WishFields({ wish, problems, onChange }: WishProps): JSX.Element {
  const { principal, lifetime } = wish;
  return (
    <>
      <TextField
        label={t("tokens.principal")}
        help={t("tokens.principal.help")}
        error={problems.includes("principal") ? t("tokens.problem.principal") : undefined}
        value={principal}
        maxLength={128}
        autoFocus
        onInput={(text) => onChange({ ...wish, principal: text })}
      />
      <RightFields wish={wish} problems={problems} onChange={onChange} />
      <TextField
        label={t("tokens.lifetime")}
        help={t("tokens.lifetime.help")}
        error={problems.includes("lifetime") ? t("tokens.problem.lifetime") : undefined}
        value={lifetime}
        maxLength={16}
        onInput={(text) => onChange({ ...wish, lifetime: text })}
      />
    </>
  );
}

function RightFields({ wish, problems, onChange }: WishProps): JSX.Element {
  const { rights } = wish;
  const isAdminOfAll = rights.some(({ role, tags }) => role === "admin" && tags === "*");
  return (
    <fieldset class="right-fields">
      <legend>{t("tokens.rights")}</legend>
      {rights.map((_, at) => (
        // Rights have no names: their places are what they are.
        <RightField key={at} at={at} wish={wish} problems={problems} onChange={onChange} />
      ))}
      {isAdminOfAll && <p class="field-help">{t("tokens.admin_all")}</p>}
      {rights.length < MAX_RIGHTS && (
        <Button
          onClick={() => onChange({ ...wish, rights: [...rights, { role: "issue", tags: "" }] })}
        >
          {t("tokens.add_right")}
        </Button>
      )}
    </fieldset>
  );
}

function RightField({
  at,
  wish,
  problems,
  onChange,
}: WishProps & { readonly at: number }): JSX.Element {
  const { rights } = wish;
  const { role = "issue", tags = "" } = rights[at] ?? {};
  const set = (change: Partial<Wish["rights"][number]>): void =>
    onChange({ ...wish, rights: rights.map((one, i) => (i === at ? { ...one, ...change } : one)) });
  const isWrong = problems.includes(`rights[${at}].tags`);
  return (
    <div class="right-field">
      <SelectField
        label={t("tokens.role")}
        value={role}
        options={ROLES.map((one): readonly [Role, string] => [one, t(`tokens.role.${one}`)])}
        onChange={(next) => set({ role: next })}
      />
      <TextField
        label={t("tokens.tags")}
        value={tags}
        maxLength={129}
        help={t("tokens.tags.help")}
        error={isWrong ? t("tokens.problem.tags") : undefined}
        onInput={(text) => set({ tags: text })}
      />
      {rights.length > 1 && (
        <Button
          look="quiet"
          label={t("tokens.remove_right", { number: at + 1 })}
          onClick={() => onChange({ ...wish, rights: rights.filter((_one, i) => i !== at) })}
        >
          ×
        </Button>
      )}
    </div>
  );
}

import type { JSX } from "preact";
import { Button } from "../../parts/button.tsx";
import { SelectField, TextField } from "../../parts/field.tsx";
import { t } from "../../text/text.ts";
import { MAX_RIGHTS, type Role, ROLES, type TokenForm } from "./token-form.ts";

interface TokenFieldsProps {
  readonly form: TokenForm;
  /** Paths of fields. */
  readonly problems: readonly string[];
  readonly onChange: (form: TokenForm) => void;
}

/** The fields of a token that is to be made. */
export function TokenFields({ form, problems, onChange }: TokenFieldsProps): JSX.Element {
  const { principal, lifetime } = form;
  return (
    <>
      <TextField
        label={t("tokens.principal")}
        help={t("tokens.principal.help")}
        error={problems.includes("principal") ? t("tokens.problem.principal") : undefined}
        value={principal}
        maxLength={128}
        autoFocus
        onInput={(text) => onChange({ ...form, principal: text })}
      />
      <RightFields form={form} problems={problems} onChange={onChange} />
      <TextField
        label={t("tokens.lifetime")}
        help={t("tokens.lifetime.help")}
        error={problems.includes("lifetime") ? t("tokens.problem.lifetime") : undefined}
        value={lifetime}
        maxLength={16}
        onInput={(text) => onChange({ ...form, lifetime: text })}
      />
    </>
  );
}

function RightFields({ form, problems, onChange }: TokenFieldsProps): JSX.Element {
  const { rights } = form;
  const isAdminOfAll = rights.some(({ role, tags }) => role === "admin" && tags === "*");
  return (
    <fieldset class="right-fields">
      <legend>{t("tokens.rights")}</legend>
      {rights.map((_, at) => (
        // Rights have no names: their places are what they are.
        <RightField key={at} at={at} form={form} problems={problems} onChange={onChange} />
      ))}
      {isAdminOfAll && <p class="field-help">{t("tokens.admin_all")}</p>}
      {rights.length < MAX_RIGHTS && (
        <Button
          onClick={() => onChange({ ...form, rights: [...rights, { role: "issue", tags: "" }] })}
        >
          {t("tokens.add_right")}
        </Button>
      )}
    </fieldset>
  );
}

function RightField({
  at,
  form,
  problems,
  onChange,
}: TokenFieldsProps & { readonly at: number }): JSX.Element {
  const { rights } = form;
  const { role = "issue", tags = "" } = rights[at] ?? {};
  const set = (change: Partial<TokenForm["rights"][number]>): void =>
    onChange({ ...form, rights: rights.map((one, i) => (i === at ? { ...one, ...change } : one)) });
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
          onClick={() => onChange({ ...form, rights: rights.filter((_one, i) => i !== at) })}
        >
          ×
        </Button>
      )}
    </div>
  );
}

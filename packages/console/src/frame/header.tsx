import type { JSX } from "preact";
import { Button } from "../parts/button.tsx";
import { SelectField } from "../parts/field.tsx";
import { hrefOf } from "../state/route-state.ts";
import { hasToken } from "../state/session.ts";
import { language, theme, zone } from "../state/settings.ts";
import { signOut, whoAmI } from "../state/sign-in.ts";
import { t } from "../text/text.ts";

export function Header(): JSX.Element {
  const principal = whoAmI.value?.principal ?? "";
  return (
    <header class="header">
      <a class="brand" href={hrefOf("")}>
        <Mark />
        <span>idmint</span>
      </a>
      <div class="header-side">
        {principal !== "" && <span class="principal">{principal}</span>}
        {hasToken.value && (
          <Button look="quiet" onClick={signOut}>
            {t("app.sign_out")}
          </Button>
        )}
        <Settings />
      </div>
    </header>
  );
}

function Mark(): JSX.Element {
  return (
    <svg class="mark" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="7" />
      <path d="M9 8v16M14.5 8v16M20 8v16M25 8v6" />
    </svg>
  );
}

function Settings(): JSX.Element {
  return (
    <details class="settings">
      <summary class="button quiet">{t("app.settings")}</summary>
      <div class="settings-body">
        <SelectField
          label={t("app.theme")}
          value={theme.value.value}
          onChange={theme.set}
          options={[
            ["auto", t("app.theme.auto")],
            ["light", t("app.theme.light")],
            ["dark", t("app.theme.dark")],
          ]}
        />
        <SelectField
          label={t("app.language")}
          value={language.value.value}
          onChange={language.set}
          options={[
            ["en", "English"],
            ["zh", "中文"],
          ]}
        />
        <SelectField
          label={t("app.zone")}
          value={zone.value.value}
          onChange={zone.set}
          options={[
            ["local", t("app.zone.local")],
            ["utc", t("app.zone.utc")],
          ]}
        />
      </div>
    </details>
  );
}

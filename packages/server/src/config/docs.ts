import { envOf, flagOf, type Option, OPTIONS } from "./table.ts";

/** docs/configuration.md, made of the table of options. */
export function configurationDocs(): string {
  const rows = Object.values(OPTIONS).map(section).join("\n");
  return `# Configuration of the server

<!-- Made by \`pnpm generate\` from packages/server/src/config/table.ts. Do not edit. -->

Each option is taken from the first of these that sets it:

1. an environment variable, \`IDMINT_…\`; a secret may also come from a file that \`IDMINT_…_FILE\` names
2. a flag of \`idmint serve\`
3. the YAML file that \`--config\` or \`IDMINT_CONFIG\` names
4. the default

What is not known is an error that says what was meant, wherever it stands, and so is every value out of its range.
Variables that Kubernetes sets for a Service called \`idmint\` (\`IDMINT_SERVICE_HOST\`, \`IDMINT_PORT_…\`) are ignored.
In the YAML file the dots of a key are levels:

\`\`\`yaml
grpc:
  address: 0.0.0.0:7600
store:
  url: postgres://idmint@db.example:5432/idmint
\`\`\`

${rows}`;
}

function section(option: Option<unknown>): string {
  const flag = flagOf(option);
  const { placeholder, accepts } = option.type;
  const usage = placeholder === "" ? "" : ` <${placeholder}>`;
  const lines = [
    `## ${option.key}`,
    "",
    option.text,
    "",
    `- Value: ${accepts}`,
    `- Default: ${option.default === undefined || option.default === "" ? "none" : `\`${option.default}\``}`,
    `- Environment: \`${envOf(option)}\`${option.isSecret === true ? `, or \`${envOf(option)}_FILE\`` : ""}`,
    `- Flag: ${flag === undefined ? "none, since others on the machine see flags" : `\`--${flag}${usage}\``}`,
    `- YAML: ${option.isNotInFile === true ? "none" : `\`${option.key}\``}`,
    "",
  ];
  return lines.join("\n");
}

/** One flag of the command line. */
export interface ConfigFlag {
  /** As commander takes it: `--grpc-address <host:port>`. */
  readonly flags: string;
  /** Without dashes: the name that `loadConfig` takes it by. */
  readonly name: string;
  readonly isSwitch: boolean;
  readonly description: string;
}

/** The flags that \`idmint serve\` has; secrets have none. */
export function configFlags(): readonly ConfigFlag[] {
  return Object.values(OPTIONS).flatMap((option: Option<unknown>) => {
    const name = flagOf(option);
    if (name === undefined) return [];
    const { placeholder } = option.type;
    const isSwitch = placeholder === "";
    const flags = isSwitch ? `--${name}` : `--${name} <${placeholder}>`;
    const byDefault =
      option.default === undefined || option.default === "" || isSwitch
        ? ""
        : ` (default: ${option.default})`;
    return [{ flags, name, isSwitch, description: `${option.text}${byDefault}` }];
  });
}

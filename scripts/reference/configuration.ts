import type { OptionSection, Registry } from '../../src/config/registry.ts';
import { toText } from '../../src/config/values.ts';
import { errors } from '../../src/errors.ts';
import { cell, code, escapeText } from './markdown.ts';

/** Renders the reference page of all user errors. */
export function renderErrors(): string {
  const sections = Object.entries(errors).map(
    ([code, { message, remedy, exit }]) => `## ${code}\n\n> ${quoted(message)}\n\n${escapeText(remedy)} Exit status ${exit}.\n`,
  );
  return `# Errors

This page lists the errors of \`device-agent\` commands and their remedies. Words in braces are replaced by the actual value. An error is
printed to stderr as one message with its remedy. Faults of a running agent are not errors but problems, which have their own codes in log,
metrics and API.

${sections.join('\n')}`;
}

/** Renders the reference page of all options: flag, environment variable, key in the file, default. `toYaml` renders the examples. */
export function renderConfiguration(registry: Registry, toYaml: (value: unknown) => string): string {
  const sections = registry.sections.map((section) => {
    const rows = registry.entries
      .filter((entry) => entry.section === section)
      .map(({ flag, negation, environment, filePath, spec }) => {
        const names = negation === undefined ? code(flag) : `${code(flag)} ${code(negation)}`;
        const place = filePath === undefined ? '' : code(filePath.join('.'));
        const choices = spec.choices === undefined ? '' : ` One of ${spec.choices.map(code).join(', ')}.`;
        return `| ${names} | ${code(environment)} | ${place} | ${spec.kind} | ${code(toText(spec, spec.default))} | ${cell(spec.help + choices)} |`;
      });
    const head = '| Flag | Environment | In the file | Kind | Default | |\n|---|---|---|---|---|---|';
    return `## ${escapeText(section.title)}\n\n${head}\n${rows.join('\n')}\n${whenChanged(section)}`;
  });
  const parts = registry.structured.map(({ path, help, example }) => {
    const value = path.split('.').reduceRight<unknown>((inner, key) => ({ [key]: inner }), example);
    return `## ${path}\n\n${escapeText(help)} Only in the file. A running agent applies changes without a restart.\n\n\`\`\`yaml\n${toYaml(value).trimEnd()}\n\`\`\`\n`;
  });
  return `# Configuration

Every option can be set by a flag, by an environment variable, and by a key in the YAML file that \`--config.file\` names. When several
are set, flags win over environment variables, and those win over the file. \`device-agent config print\` shows the effective values and
their sources. \`device-agent config check\` reports errors with file, line and column. \`device-agent config schema\` prints the JSON Schema.

This page writes keys of the file with dots, but in the file they are nested: \`web.config.file\` is \`file\` below \`config\` below
\`web\`. Durations are numbers with units, such as \`1m30s\` or \`250ms\`. In flags and variables, commas separate the items of a list. An
empty variable counts as not set. The agent warns about unknown variables that begin with \`DEVICE_AGENT_\`.

## Changes of the file

A running agent reads the file every 5 seconds, and also after \`SIGHUP\` and after \`POST /-/reload\` (see \`--web.enable-lifecycle\`).
It follows links, so it sees the update of a mounted ConfigMap, unless the file is mounted by \`subPath\`: Kubernetes never updates such a
file. The agent uses a new content when two reads in a row return it, because an editor may write the file in several steps; the second
read follows after 2 seconds. A signal or a request uses it at once. Flags and environment variables still win over the file.

Connections, health state and counters stay as they are. A resource of the device plugin whose settings did not change keeps its socket and
its stream. A changed resource registers again. When options of a probe change, the probe of that family starts anew.

If the new file is not valid, the agent keeps the last valid configuration and logs the errors once. \`device_agent_config_last_reload_successful\`
is then 0, and \`/api/v1/status\` shows the errors. The sections below say which changes take effect only at the next start. The agent logs
the names of changed options that wait for it.

${[...sections, ...parts].join('\n')}`;
}

function whenChanged({ inFile = true, isLive = false, toggle, path }: OptionSection): string {
  if (!inFile) return '';
  const toggleText = toggle === undefined ? '' : ` A change of ${code(`${path}.enabled`)} takes effect at the next start.`;
  return isLive ? `\nA running agent applies changes without a restart.${toggleText}\n` : '\nA change takes effect at the next start.\n';
}

function quoted(text: string): string {
  return escapeText(text).replaceAll('\n', '\n> ');
}

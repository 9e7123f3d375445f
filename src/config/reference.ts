import { errors } from '../errors.ts';
import type { Registry } from './registry.ts';
import { toText } from './values.ts';

/** Reference page of all errors that a user can meet. */
export function renderErrors(): string {
  const sections = Object.entries(errors).map(
    ([code, { message, remedy, exit }]) => `## ${code}\n\n> ${quoted(message)}\n\n${escapeText(remedy)} Exit status ${exit}.\n`,
  );
  return `# Errors

What \`device-agent\` says when it cannot do what was asked, and what to do then. Words in braces stand for the case at hand. Errors go
to stderr as one message with its remedy; troubles of a running agent are not errors in this sense: they are problems, with their own
codes in log, metrics and API.

${sections.join('\n')}`;
}

/** Reference page of all options: flag, environment variable, place in the file, default. YAML of examples comes from the caller. */
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
    return `## ${escapeText(section.title)}\n\n${head}\n${rows.join('\n')}\n`;
  });
  const parts = registry.structured.map(({ path, help, example }) => {
    const value = path.split('.').reduceRight<unknown>((inner, key) => ({ [key]: inner }), example);
    return `## ${path}\n\n${escapeText(help)} Only in the file.\n\n\`\`\`yaml\n${toYaml(value).trimEnd()}\n\`\`\`\n`;
  });
  return `# Configuration

Every option is a flag, an environment variable and a place in the YAML file named by \`--config.file\`; of several the later in this
order wins: default, file, environment, flag. \`device-agent config print\` shows what holds and who said it,
\`device-agent config check\` names wrong places by file, line and column, \`device-agent config schema\` prints the JSON Schema.

Places in the file are written with dots here and nested there: \`probe.nvidia.enabled\` is \`enabled\` below \`nvidia\` below \`probe\`.
Durations are numbers with units, \`1m30s\` or \`250ms\`. Lists are separated by commas in flags and variables. A variable that is set
but empty counts as not set. A variable that begins with \`DEVICE_AGENT_\` and means nothing is warned of.

${[...sections, ...parts].join('\n')}`;
}

function code(text: string): string {
  return text === '' ? '' : `\`${text.replaceAll('|', '\\|')}\``;
}

function cell(text: string): string {
  return escapeText(text).replaceAll('|', '\\|').replaceAll('\n', ' ');
}

function quoted(text: string): string {
  return escapeText(text).replaceAll('\n', '\n> ');
}

/** Keeps `<x>` in a text from being taken for a tag. */
function escapeText(text: string): string {
  return text.replaceAll('<', '&lt;');
}

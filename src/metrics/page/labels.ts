/** Text of a series' labels without the braces; empty for no labels. */
export type LabelText = string;

/** Label values. A label with an unknown value is left out, because Prometheus treats an empty value as an absent label. */
export type LabelValues = Readonly<Record<string, string | number | undefined>>;

/** Renders labels in the given order, without undefined ones. */
export function labelText(labels: LabelValues): LabelText {
  let text = '';
  for (const name in labels) {
    const value = labels[name];
    if (value !== undefined) text += `${text === '' ? '' : ','}${name}="${escapeLabelValue(String(value))}"`;
  }
  return text;
}

export function joinLabels(first: LabelText, second: LabelText): LabelText {
  if (first === '') return second;
  return second === '' ? first : `${first},${second}`;
}

/** Both text formats escape exactly three characters in a label value: backslash, quote and line feed. */
function escapeLabelValue(value: string): string {
  return /[\\"\n]/.test(value) ? value.replace(/[\\"\n]/g, (character) => (character === '\n' ? '\\n' : `\\${character}`)) : value;
}

/** Text format 0.0.4 does not escape quotes in HELP; OpenMetrics does. */
export function escapeHelp(help: string, openMetrics: boolean): string {
  const escaped = help.replace(/[\\\n]/g, (character) => (character === '\n' ? '\\n' : '\\\\'));
  return openMetrics ? escaped.replaceAll('"', '\\"') : escaped;
}

/** Maps an empty text, which sysfs and plugins use for a missing value, to undefined. */
export const known = (value: string | undefined): string | undefined => (value === undefined || value === '' ? undefined : value);

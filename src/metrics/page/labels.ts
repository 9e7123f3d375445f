/** Text of a series' labels as it stands between the braces; empty for none. */
export type LabelText = string;

/** Values of labels; a label whose value is unknown is left out, since to Prometheus an empty value is an absent label. */
export type LabelValues = Readonly<Record<string, string | number | undefined>>;

/** Writes labels in the order given, leaving out what is undefined. */
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

/** Backslash, quote and line feed are the three characters that both text formats escape in a label value. */
function escapeLabelValue(value: string): string {
  return /[\\"\n]/.test(value) ? value.replace(/[\\"\n]/g, (character) => (character === '\n' ? '\\n' : `\\${character}`)) : value;
}

/** In text format 0.0.4 a quote in HELP stays as it is, in OpenMetrics it is escaped. */
export function escapeHelp(help: string, openMetrics: boolean): string {
  const escaped = help.replace(/[\\\n]/g, (character) => (character === '\n' ? '\\n' : '\\\\'));
  return openMetrics ? escaped.replaceAll('"', '\\"') : escaped;
}

/** Empty text for values that sysfs or a plugin left blank: treated as unknown. */
export const known = (value: string | undefined): string | undefined => (value === undefined || value === '' ? undefined : value);

/** Text of a series' labels without the braces; empty for no labels. */
export type LabelText = string;

/** Label values. An undefined or empty value is left out, because Prometheus treats an empty value as an absent label. */
export type LabelValues = Readonly<Record<string, string | number | undefined>>;

/** Renders labels in the given order. */
export function labelText(labels: LabelValues): LabelText {
  return labelTextOf(labels, Object.keys(labels));
}

/** Renders the labels with these names, in this order. `prefix` comes before each name. */
export function labelTextOf(labels: LabelValues, names: readonly string[], prefix = ''): LabelText {
  let text = '';
  // An iterator would be garbage for each label of each page.
  for (let at = 0; at < names.length; at += 1) {
    const name = names[at] as string;
    const value = labels[name];
    if (value !== undefined && value !== '') text += `${text === '' ? '' : ','}${prefix}${name}="${escapeLabelValue(String(value))}"`;
  }
  return text;
}

export function joinLabels(first: LabelText, second: LabelText): LabelText {
  if (first === '') return second;
  return second === '' ? first : `${first},${second}`;
}

/** Both text formats escape exactly three characters in a label value: backslash, quote and line feed. */
function escapeLabelValue(value: string): string {
  return ESCAPED.test(value) ? value.replaceAll(/[\\"\n]/g, (character) => (character === '\n' ? '\\n' : `\\${character}`)) : value;
}

const ESCAPED = /[\\"\n]/;

/** Text format 0.0.4 does not escape quotes in HELP; OpenMetrics does. */
export function escapeHelp(help: string, openMetrics: boolean): string {
  const escaped = help.replace(/[\\\n]/g, (character) => (character === '\n' ? '\\n' : '\\\\'));
  return openMetrics ? escaped.replaceAll('"', '\\"') : escaped;
}

/** What is kept of a value of a document; undefined: nothing. */
export type Rule = (value: unknown) => unknown;

export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const text =
  (redacted: (value: string) => string): Rule =>
  (value) =>
    typeof value === 'string' ? redacted(value) : undefined;

/** A number, also one of 64 bits. */
export const number: Rule = (value) => (typeof value === 'number' || typeof value === 'bigint' ? value : undefined);

export const list =
  (rule: Rule): Rule =>
  (value) =>
    Array.isArray(value) ? value.map(rule) : undefined;

/** A document with these keys and no others. */
export const record =
  (rules: Readonly<Record<string, Rule>>): Rule =>
  (value) =>
    isRecord(value) ? Object.fromEntries(Object.entries(rules).map(([key, rule]) => [key, rule(value[key])])) : undefined;

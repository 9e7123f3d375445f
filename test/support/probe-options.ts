import { parseDuration } from '../../src/model/duration.ts';
import { defaultValues } from '../../src/model/options.ts';
import type { DeviceFamily } from '../../src/probes/family.ts';

/** A family's options from texts as a machine or a simulated node gives them, the rest at their defaults. */
export function probeOptions(family: DeviceFamily, texts: Readonly<Record<string, string>>): never {
  const values: Record<string, unknown> = { ...defaultValues(family.options) };
  for (const [name, text] of Object.entries(texts)) {
    const kind = family.options[name]?.kind;
    if (kind === undefined) throw new Error(`${family.name} has no option ${name}`);
    values[name] =
      kind === 'boolean'
        ? text === 'true'
        : kind === 'integer'
          ? Number(text)
          : kind === 'duration'
            ? parseDuration(text)
            : kind === 'list'
              ? text.split(',')
              : text;
  }
  return values as never;
}

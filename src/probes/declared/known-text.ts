import type { KnownNames, KnownOutput, KnownText } from '../../model/known-text.ts';
import type { Declaration, DeclaredSource, Fact } from './declaration.ts';

type Form = 'values' | 'texts' | 'names';

/** Facts that all devices of a kind share. A UUID and a serial number are never known. */
const FORMS: Readonly<Record<string, Form>> = {
  ...{ model: 'texts', vendor: 'texts', driver: 'texts', firmware: 'texts', index: 'values', numaNode: 'values', minor: 'values' },
  ...{ vfIndex: 'values', pciAddress: 'names', physicalFunction: 'names' },
};

interface Known {
  readonly form: Form;
  readonly source: DeclaredSource;
}

/** What a declaration reads, by the use that it makes of it. */
export function knownTextOf({ devices, readings = [], conditions = [], commands = {} }: Declaration): KnownText {
  const known: readonly Known[] = [
    ...[...readings, ...conditions].map((source): Known => ({ form: 'values', source })),
    ...devices.flatMap(({ facts = {}, id, aliases = [], parent }) => [
      ...Object.entries(facts).flatMap(([fact, source]) => knownAs(FORMS[fact], source)),
      ...[id, ...aliases, ...(parent === undefined ? [] : [parent])].flatMap((source) => knownAs('names', source)),
    ]),
  ];
  // A UUID can be an alias, too.
  const identities = devices.flatMap(({ facts: { uuid, serial } = {} }) => [uuid, serial]).map((source) => cellOf(source));
  const named = ({ source }: Known): boolean => !identities.includes(cellOf(source));
  const outputs = Object.entries(commands).map(([name, { path, columns, separator, key }]): KnownOutput => {
    const own = known.filter((one) => one.source.command === name && named(one));
    const keys: KnownNames = key === undefined ? {} : { names: [last(key)] };
    const cells = byForm(own, ({ pointer, column }) => (pointer === undefined ? column : last(pointer)));
    return {
      program: path.split('/').at(-1) as string,
      ...cells,
      names: [...(keys.names ?? []), ...(cells.names ?? [])],
      ...(columns === undefined ? {} : { columns }),
      ...(separator === undefined ? {} : { separator }),
    };
  });
  return { files: byForm(known.filter(named), ({ file }) => (file === undefined ? undefined : fileName(file))), outputs };
}

const knownAs = (form: Form | undefined, source: Fact): Known[] =>
  form === undefined || typeof source === 'string' ? [] : [{ form, source }];

const cellOf = (source: Fact | undefined): string =>
  typeof source === 'object' ? [source.command, source.pointer ?? source.column, source.file].join(' ') : '';

function byForm(known: readonly Known[], nameOf: (source: DeclaredSource) => string | undefined): KnownNames {
  const names = (form: Form): string[] =>
    known.flatMap((one) => (one.form === form ? [nameOf(one.source)] : [])).filter((name) => name !== undefined);
  return { values: names('values'), texts: names('texts'), names: names('names') };
}

const last = (path: string): string => path.split('/').at(-1) as string;

/** A link can lead to the directory of a file, so only the last directory counts, and only before a name that can be any. */
const fileName = (file: string): string => (last(file) === '*' ? file.split('/').slice(-2).join('/') : last(file));

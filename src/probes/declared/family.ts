import { existsSync } from 'node:fs';
import { kernelLogNeed, logProblems } from '../../host/kernel-log/problems.ts';
import type { Resolve } from '../../model/allocation.ts';
import type { ActivitySpec, Origin } from '../../model/declaration.ts';
import { defined } from '../../model/defined.ts';
import type { Device } from '../../model/device.ts';
import { seconds } from '../../model/duration.ts';
import type { NameVocabulary, OutputVocabulary, Vocabulary } from '../../model/known-text.ts';
import { excludeOption, listOption, type OptionSpec, pacedOption, stringOption } from '../../model/options.ts';
import type { PageReading, PageReadings } from '../../model/shared-metrics.ts';
import type { DeviceFamily } from '../family.ts';
import { knownLine } from '../kit/log-row.ts';
import { nodeAccess, SRIOV_VARIABLE } from '../kit/node-access.ts';
import { fill, type Words } from '../kit/template.ts';
import { allRowsOf, conditionsOf, logRowsOf, metricsOf, problems } from './conditions.ts';
import type { Declaration, DeclaredResource, DeclaredSource, Fact } from './declaration.ts';
import { hardwareOf, presenceOf } from './discover.ts';
import { capturesOf } from './glob.ts';
import { type DeclaredOptions, DeclaredProbe } from './probe.ts';

type Form = 'values' | 'texts' | 'names';

/** Facts that all devices of a kind share. A UUID and a serial number are never known. */
const FORMS: Readonly<Record<string, Form>> = {
  ...{ model: 'texts', vendor: 'texts', driver: 'texts', firmware: 'texts', index: 'values', numaNode: 'values', minor: 'values' },
  ...{ vfIndex: 'values', pciAddress: 'names', physicalFunction: 'names' },
};

interface SourceForm {
  readonly form: Form;
  readonly source: DeclaredSource;
}

/** What a declaration reads, by the use that it makes of it. */
function knownTextOf({ devices, readings = [], conditions = [], commands = {} }: Declaration): Vocabulary {
  const known: readonly SourceForm[] = [
    ...[...readings, ...conditions].map((source): SourceForm => ({ form: 'values', source })),
    ...devices.flatMap(({ facts = {}, id, aliases = [], parent }) => [
      ...Object.entries(facts).flatMap(([fact, source]) => knownAs(FORMS[fact], source)),
      ...[id, ...aliases, ...(parent === undefined ? [] : [parent])].flatMap((source) => knownAs('names', source)),
    ]),
  ];
  // A UUID can be an alias, too.
  const identities = devices.flatMap(({ facts: { uuid, serial } = {} }) => [uuid, serial]).map((source) => cellOf(source));
  const named = ({ source }: SourceForm): boolean => !identities.includes(cellOf(source));
  const outputs = Object.entries(commands).map(([name, { path, columns, separator, key }]): OutputVocabulary => {
    const own = known.filter((one) => one.source.command === name && named(one));
    const keys: NameVocabulary = key === undefined ? {} : { names: [last(key)] };
    const cells = byForm(own, ({ pointer, column }) => (pointer === undefined ? column : last(pointer)));
    return {
      program: path.split('/').at(-1) as string,
      ...cells,
      names: [...(keys.names ?? []), ...(cells.names ?? [])],
      ...defined({ columns, separator }),
    };
  });
  return { files: byForm(known.filter(named), ({ file }) => (file === undefined ? undefined : fileName(file))), outputs };
}

const knownAs = (form: Form | undefined, source: Fact): SourceForm[] =>
  form === undefined || typeof source === 'string' ? [] : [{ form, source }];

const cellOf = (source: Fact | undefined): string =>
  typeof source === 'object' ? [source.command, source.pointer ?? source.column, source.file].join(' ') : '';

function byForm(known: readonly SourceForm[], nameOf: (source: DeclaredSource) => string | undefined): NameVocabulary {
  const names = (form: Form): string[] =>
    known.flatMap((one) => (one.form === form ? [nameOf(one.source)] : [])).filter((name) => name !== undefined);
  return { values: names('values'), texts: names('texts'), names: names('names') };
}

const last = (path: string): string => path.split('/').at(-1) as string;

/** A link can lead to the directory of a file, so only the last directory counts, and only before a name that can be any. */
const fileName = (file: string): string => (last(file) === '*' ? file.split('/').slice(-2).join('/') : last(file));

/** Finds the devices whose declared id equals the id of an allocation. For a claim, the driver and the device's name count. */
export function resolver(resources: readonly DeclaredResource[]): Resolve {
  return ({ resource, deviceId, claim }, devices) => {
    const [owner, id] = claim === undefined ? [resource, deviceId] : [claim.driver, claim.device];
    const fitting = resources.filter((declared) => capturesOf(declared.resource, owner) !== undefined);
    const isNamed = (device: Device): boolean =>
      fitting.some(({ kinds, alias }) => {
        const wanted = alias === undefined ? undefined : fill(alias, { id });
        return wanted !== undefined && (kinds?.includes(device.kind) ?? true) && device.aliases.includes(wanted);
      }) ||
      fitting.some(
        ({ kinds, ids = [] }) =>
          (kinds?.includes(device.kind) ?? true) &&
          ids.some((template) => fill(template, wordsOf(device))?.toLowerCase() === id.toLowerCase()),
      );
    return fitting.length === 0 ? [] : devices.filter(isNamed).map((device) => device.id);
  };
}

/** The names that a resource may end in a number for: ids of plugins of these resources may be bare numbers. */
export const ownsNumbers = (resources: readonly DeclaredResource[]): ((resource: string) => boolean) => {
  const numbered = resources.filter(
    ({ ids = [], alias }) => alias !== undefined || ids.some((template) => /^\{(?:index|minor|vfIndex)\}$/.test(template)),
  );
  return (resource) => numbered.some((declared) => capturesOf(declared.resource, resource) !== undefined);
};

/** The facts of a device as texts, and its address with dashes, as drivers of claims write it. */
function wordsOf(device: Device): Words {
  const texts = Object.entries(device).flatMap(([name, value]): [string, string][] =>
    typeof value === 'string' || typeof value === 'number' ? [[name, String(value)]] : [],
  );
  const dashed = device.pciAddress?.replace(/[:.]/g, '-');
  return { ...Object.fromEntries(texts), ...defined({ dashedAddress: dashed }) };
}

/** A declared family, and who wrote it. Plain data: the reader builds the family again from it. */
export interface DeclaredFamily {
  readonly declaration: Declaration;
  readonly origin: Exclude<Origin, 'code'>;
}

const COMMAND_PATH = /^(.+)-path$/;

/** Makes a device family of a checked declaration. Everything else treats it like a family in code. */
export function familyOf(declared: DeclaredFamily): DeviceFamily {
  const { origin, declaration } = declared;
  const { family, summary, proven, resources = [], enabled = true } = declaration;
  const [lines, all] = [logRowsOf(declaration), allRowsOf(declaration)];
  return {
    name: family,
    canBeSlow: Object.keys(declaration.commands ?? {}).length > 0,
    summary: summary.replace(/\.$/, ''),
    ...defined({ proven }),
    declared,
    origin,
    isOffByDefault: !enabled,
    kinds: [...new Set(declaration.devices.map(({ kind }) => kind))],
    metrics: metricsOf(declaration),
    conditions: conditionsOf(declaration),
    problems: all.length === 0 ? problems : [...problems, ...logProblems],
    ...(all.length === 0 ? {} : { logRows: lines, needs: [kernelLogNeed] }),
    isPresent: presenceOf(declaration, existsSync),
    bus: hardwareOf(declaration),
    ...((declaration.readings ?? []).some(({ show }) => show !== undefined) && { shows: showsOf(declaration) }),
    options: optionsOf(declaration),
    known: { ...knownTextOf(declaration), ...(all.length > 0 && { kernelPrograms: knownLine(all) }) },
    createProbe: (host, options) => {
      const given = options as unknown as DeclaredOptions & Readonly<Record<string, unknown>>;
      return new DeclaredProbe(host, declaration, given, pathsIn(given));
    },
    ...(resources.length === 0 ? {} : { resolve: resolver(resources), ownsNumbers: ownsNumbers(resources) }),
    ...defined({ activity: declaration.activity satisfies ActivitySpec | undefined }),
    access: (device) => nodeAccess(device, SRIOV_VARIABLE),
  };
}

function optionsOf({ commands = {}, enabled = true }: Declaration): Readonly<Record<string, OptionSpec>> {
  const paths = Object.entries(commands).map(([name, { path }]): [string, OptionSpec] => [
    `${name}-path`,
    stringOption('', `Absolute path of the program ${path.split('/').at(-1)}; empty means the declared path, ${path}`),
  ]);
  return {
    // Who turns on a family that is off by default says which hardware it is about.
    ...(enabled ? {} : { include: listOption([], 'Ids of the devices to report, with * for any characters; empty means all') }),
    exclude: excludeOption,
    'facts-interval': pacedOption('refresh.facts', seconds(60)),
    ...Object.fromEntries(paths),
  };
}

/** What is shown of a device besides what its declaration names, and how many in all. */
const USUAL: readonly PageReading[] = ['busy', 'memory', 'power', 'temperature'];
const MOST_SHOWN = 5;

/** Of each kind the readings with a name for people, in the order of the rows. */
function showsOf({ devices, readings = [] }: Declaration): PageReadings {
  const shownOf = (kind: string): readonly PageReading[] =>
    readings.flatMap(({ metric, show, kinds, labels = {} }) => {
      if (show === undefined || kinds?.includes(kind) === false) return [];
      const fixed = Object.entries(labels).filter(([, text]) => !text.includes('{'));
      return [{ label: show, metric, labels: Object.fromEntries(fixed) }];
    });
  return Object.fromEntries(devices.map(({ kind }) => [kind, [...shownOf(kind), ...USUAL].slice(0, MOST_SHOWN)]));
}

function pathsIn(options: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
  const given = Object.entries(options).flatMap(([option, value]): [string, string][] => {
    const name = COMMAND_PATH.exec(option)?.[1];
    return name === undefined || typeof value !== 'string' || !value.startsWith('/') ? [] : [[name, value]];
  });
  return Object.fromEntries(given);
}

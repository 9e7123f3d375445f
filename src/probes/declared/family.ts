import { existsSync } from 'node:fs';
import type { DeviceAccess } from '../../model/access.ts';
import type { ActivitySpec, Origin, PciSign } from '../../model/declaration.ts';
import type { Device } from '../../model/device.ts';
import { seconds } from '../../model/duration.ts';
import { excludeOption, listOption, type OptionSpec, pacedOption, stringOption } from '../../model/options.ts';
import type { DeviceFamily } from '../family.ts';
import { conditionsOf } from './conditions.ts';
import type { Declaration } from './declaration.ts';
import { presenceOf } from './discover.ts';
import { knownTextOf } from './known-text.ts';
import { metricsOf } from './metrics.ts';
import { type DeclaredOptions, DeclaredProbe } from './probe.ts';
import { problems } from './problems.ts';
import { ownsNumbers, resolver } from './resolve.ts';

/** A declared family, and who wrote it. Plain data: the thread builds the family again from it. */
export interface DeclaredFamily {
  readonly declaration: Declaration;
  readonly origin: Exclude<Origin, 'code'>;
}

const COMMAND_PATH = /^(.+)-path$/;

/** Makes a device family of a checked declaration. Everything else treats it like a family in code. */
export function familyOf(declared: DeclaredFamily): DeviceFamily {
  const { origin, declaration } = declared;
  const { family, summary, proven, resources = [], enabled = true } = declaration;
  return {
    name: family,
    summary: summary.replace(/\.$/, ''),
    ...(proven === undefined ? {} : { proven }),
    declared,
    origin,
    isOffByDefault: !enabled,
    kinds: [...new Set(declaration.devices.map(({ kind }) => kind))],
    metrics: metricsOf(declaration),
    conditions: conditionsOf(declaration),
    problems,
    isPresent: presenceOf(declaration, existsSync),
    signs: signsOf(declaration),
    options: optionsOf(declaration),
    known: knownTextOf(declaration),
    createProbe: (host, options) => {
      const given = options as unknown as DeclaredOptions & Readonly<Record<string, unknown>>;
      return new DeclaredProbe(host, declaration, given, pathsIn(given));
    },
    ...(resources.length === 0 ? {} : { resolve: resolver(resources), ownsNumbers: ownsNumbers(resources) }),
    ...(declaration.activity === undefined ? {} : { activity: declaration.activity satisfies ActivitySpec }),
    access,
  };
}

const access = (device: Device): DeviceAccess => ({
  deviceNodes: (device.characterDevices ?? []).map((path) => ({ path, permissions: 'rw' })),
  ...(device.pciAddress !== undefined && { env: { 'PCIDEVICE_{RESOURCE}': device.pciAddress } }),
});

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

function pathsIn(options: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
  const given = Object.entries(options).flatMap(([option, value]): [string, string][] => {
    const name = COMMAND_PATH.exec(option)?.[1];
    return name === undefined || typeof value !== 'string' || !value.startsWith('/') ? [] : [[name, value]];
  });
  return Object.fromEntries(given);
}

/** Hardware that a place names by vendor and class. */
function signsOf({ devices, summary }: Declaration): readonly PciSign[] {
  return devices.flatMap(({ find: { pci } }): PciSign[] =>
    pci?.vendor === undefined || pci.class === undefined || pci.drivers !== undefined
      ? []
      : [{ vendor: pci.vendor, classes: [pci.class], what: summary, ...(pci.devices === undefined ? {} : { devices: pci.devices }) }],
  );
}

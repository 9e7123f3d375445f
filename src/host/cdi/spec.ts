import type { YamlNode } from '../documents/yaml-nodes.ts';
import { boolean, type Decoder, InvalidSpec, int64, list, listOfAll, optional, record, text, texts, uint32 } from './decode.ts';

/** A device node of a CDI spec. Empty and undefined: the runtime takes it from the host. */
export interface CdiNode {
  readonly path: string;
  readonly hostPath: string;
  readonly type: string;
  readonly major: number | undefined;
  readonly minor: number | undefined;
  readonly permissions: string;
}

const deviceNodes = listOfAll(
  record<CdiNode & Record<'fileMode' | 'uid' | 'gid', unknown>>({
    path: text,
    hostPath: text,
    type: text,
    major: int64,
    minor: int64,
    fileMode: uint32,
    permissions: text,
    uid: uint32,
    gid: uint32,
  }),
);
const netDevices = listOfAll(record({ hostInterfaceName: text, name: text }));
const hooks = listOfAll(record({ hookName: text, path: text, args: list(text), env: list(text), timeout: int64 }));
const mounts = listOfAll(record({ hostPath: text, containerPath: text, options: list(text), type: text }));
const intelRdt = optional(
  record({ closID: text, l3CacheSchema: text, memBwSchema: text, schemata: optional(list(text)), enableMonitoring: boolean }),
);
const edits = record({ env: list(text), deviceNodes, netDevices, hooks, mounts, intelRdt, additionalGids: list(uint32) });
const device = record({ name: text, annotations: texts, containerEdits: edits });
const spec = record({ cdiVersion: text, kind: text, annotations: texts, devices: list(device), containerEdits: edits });

type Edits = ReturnType<typeof edits>;
export type CdiSpec = ReturnType<typeof spec>;

/** Versions of the format that the library takes, from the first one to the last one, and what a spec of an earlier version must not have. */
const VERSIONS: readonly (readonly [version: string, isNeeded: (spec: CdiSpec, all: readonly Edits[]) => boolean])[] = [
  ['0.3.0', () => true],
  ['0.4.0', (_, all) => all.some(({ mounts }) => mounts.some(({ type }) => type !== ''))],
  ['0.5.0', ({ devices }, all) => devices.some(({ name }) => /^\d/.test(name)) || all.some((one) => one.deviceNodes.some(hasHostPath))],
  ['0.6.0', (one) => /\/.*\./s.test(one.kind) || [one, ...one.devices].some(({ annotations }) => annotations.length > 0)],
  ['0.7.0', (_, all) => all.some((one) => one.intelRdt !== undefined || one.additionalGids.length > 0)],
  ['0.8.0', () => false],
  ['1.0.0', () => false],
  [
    '1.1.0',
    (_, all) =>
      all.some(({ netDevices, intelRdt: rdt }) => netDevices.length > 0 || rdt?.schemata !== undefined || rdt?.enableMonitoring === true),
  ],
];
const hasHostPath = ({ hostPath }: CdiNode): boolean => hostPath !== '';

const HOOKS: ReadonlySet<string> = new Set(['prestart', 'createRuntime', 'createContainer', 'startContainer', 'poststart', 'poststop']);

/**
 * The spec in a document. It takes what the library of container runtimes takes, and nothing else: a runtime leaves every other file out
 * (tags.cncf.io/container-device-interface 1.1.2, pkg/cdi/spec.go). Throws {@link InvalidSpec}.
 */
export function cdiSpecOf(document: YamlNode | undefined): CdiSpec {
  if (document === undefined) throw new InvalidSpec('it is empty');
  const read = (spec as Decoder<CdiSpec>)(document, 'the spec');
  const fault = faultOf(read);
  if (fault !== undefined) throw new InvalidSpec(fault);
  return read;
}

function faultOf(read: CdiSpec): string | undefined {
  const { cdiVersion, kind, devices } = read;
  const all = [read.containerEdits, ...devices.map(({ containerEdits }) => containerEdits)];
  const version = VERSIONS.findIndex(([known]) => known === cdiVersion.replace(/^v/, ''));
  if (version < 0) return `its version ${JSON.stringify(cdiVersion)} is not known`;
  const needed = VERSIONS.findLastIndex(([, isNeeded]) => isNeeded(read, all));
  if (version < needed) return `what it has needs version ${VERSIONS[needed]?.[0]}`;
  if (!/^[a-z](?:[\w.-]*[a-z\d])?\/[a-z](?:[\w.-]*[a-z\d])?$/i.test(kind)) return `its kind ${JSON.stringify(kind)} is no vendor/class`;
  if (devices.length === 0) return 'it has no devices';
  if (new Set(devices.map(({ name }) => name)).size < devices.length) return 'two of its devices have one name';
  for (const { name, containerEdits } of devices) {
    if (!/^[a-z\d](?:[\w.:-]*[a-z\d])?$/i.test(name)) return `${JSON.stringify(name)} is no name of a device`;
    if (Object.values(containerEdits).every((edit) => edit === undefined || (Array.isArray(edit) && edit.length === 0)))
      return `its device ${JSON.stringify(name)} changes nothing`;
  }
  return all.map(faultOfEdits).find((fault) => fault !== undefined);
}

function faultOfEdits({ env, deviceNodes, netDevices, hooks, mounts, intelRdt }: Edits): string | undefined {
  if ([env, ...hooks.map((hook) => hook.env)].flat().some((one) => one.indexOf('=') < 1)) return 'it has a variable without name and value';
  const node = deviceNodes.find((one) => !isNode(one));
  if (node !== undefined) return `its device node ${JSON.stringify(node.path)} has a path, type, number or permission that is not valid`;
  if (!hooks.every(({ hookName, path }) => HOOKS.has(hookName) && path !== '')) return 'it has a hook without known name and path';
  if (mounts.some(({ hostPath, containerPath }) => hostPath === '' || containerPath === '')) return 'it has a mount without both paths';
  const closID = intelRdt?.closID ?? '';
  if (closID !== '/' && (Buffer.byteLength(closID) >= 4_096 || /^\.\.?$|[/\n]/.test(closID))) return 'its closID is no name of a file';
  const interfaces = netDevices.map((one) => one.hostInterfaceName);
  const inContainer = netDevices.map(({ name }) => name);
  const areNames = [interfaces, inContainer].every((list) => new Set(list).size === list.length && !list.includes(''));
  return areNames ? undefined : 'its network devices have names that are empty or not unique';
}

const isNode = ({ path, type, major = 0, minor = 0, permissions }: CdiNode): boolean =>
  path !== '' && /^[bcup]?$/.test(type) && major >= 0 && minor >= 0 && (permissions === 'none' || /^[rwm]*$/.test(permissions));

import { Tree } from '../../host/fs/tree.ts';
import { pathOptions } from '../../host/options.ts';
import { BusFunctions } from '../../host/pci/functions.ts';
import type { Problem } from '../../model/collection.ts';
import type { Device } from '../../model/device.ts';
import type { DeviceFamily } from '../../probes/family.ts';
import { supervisorProblems } from '../../supervisor/problems.ts';
import { BOARD_PATH, boardIn } from '../board-answer.ts';
import { type CheckContext, type CheckResult, finding, ok, skipped } from './check.ts';
import { checkRoots } from './process-checks.ts';

/** The part of a collection that the check needs. */
export interface FamilyCollection {
  readonly reports: readonly { readonly device: { readonly kind: string } }[];
  readonly source?: string | undefined;
}

/** Judges the probe of each family by the agent's latest run. Without an agent each probe runs once here. */
export async function checkFamilies(context: CheckContext): Promise<CheckResult[]> {
  const probes = probesIn((await context.ask('/api/v1/status')).answer?.body);
  const devices = probes && boardIn((await context.ask(BOARD_PATH)).answer?.body)?.devices;
  const results = (await Promise.all(context.families.map((family) => checkFamily(family, context, probes, devices)))).flat();
  // The check of the directory says it once.
  const isWithoutSysfs = checkRoots(context).some(({ name, status }) => name === 'sysfs' && status === 'finding');
  return results.map((one) => (isWithoutSysfs && one.detail.endsWith('[sysfs-unusable]') ? skipped(one.name, 'there is no sysfs') : one));
}

async function checkFamily(
  family: DeviceFamily,
  context: CheckContext,
  probes: readonly ProbeStatus[] | undefined,
  devices: readonly Pick<Device, 'family' | 'kind'>[] | undefined,
): Promise<CheckResult[]> {
  const { configuration } = context;
  const section = `probe.${family.name}`;
  if (!configuration.isOn(section))
    return [
      skipped(
        section,
        configuration.setting(section).origin.from === 'default'
          ? `off by default; --${section} turns it on`
          : `turned off by --no-${section}`,
      ),
    ];
  const hardware = (family.bus ?? []).filter(({ isListedByFault }) => isListedByFault !== true);
  const onBus = new BusFunctions(new Tree(configuration.section('path', pathOptions).sysfs), hardware).read(0);
  const state = probes?.find((probe) => probe.family === family.name);
  if (state !== undefined && devices !== undefined) {
    if (state.succeeded === undefined && state.problems.length === 0)
      return [skipped(section, 'the agent has not finished a run of it yet')];
    const reports = devices.filter((device) => device.family === family.name).map((device) => ({ device }));
    return judgeFamily(family, { reports }, state.problems, onBus);
  }
  if (probes !== undefined) return [skipped(section, 'the running agent does not read it: its configuration is another one')];
  const { runFamily } = await import('./family-run.ts');
  const { collection, problems } = await runFamily(family, context);
  return judgeFamily(family, collection, problems, onBus);
}

interface ProbeStatus {
  readonly family: string;
  readonly succeeded?: boolean;
  readonly problems: readonly Problem[];
}

/** The probes of the running agent; undefined when none answers. */
function probesIn(body: unknown): readonly ProbeStatus[] | undefined {
  const { probes } = (body ?? {}) as { readonly probes?: unknown };
  const isTold = (one: Partial<ProbeStatus> | null): boolean => typeof one?.family === 'string' && Array.isArray(one.problems);
  return Array.isArray(probes) && probes.every(isTold) ? probes : undefined;
}

/** Compares the result of the probe with the devices on the PCI bus. */
export function judgeFamily(
  family: Pick<DeviceFamily, 'name' | 'problems'>,
  collection: FamilyCollection | undefined,
  problems: readonly Problem[],
  onBus: readonly { readonly address: string; readonly hardware: { readonly what: string } }[],
): CheckResult[] {
  const name = `probe.${family.name}`;
  const specs = [...family.problems, ...supervisorProblems];
  const found = problems.map(({ code, message, device }) => {
    const spec = specs.find((one) => one.code === code);
    const detail = `${device === undefined ? '' : `${device}: `}${message} [${code}]`;
    return finding(name, detail, spec?.meaning ?? 'The family does not declare this problem.', spec?.remedy ?? 'Report it as a bug.');
  });
  const devices = collection?.reports ?? [];
  if (found.length === 0 && devices.length === 0 && onBus[0] !== undefined) {
    const {
      address,
      hardware: { what },
    } = onBus[0];
    const more = onBus.length > 1 ? ` and ${onBus.length - 1} more` : '';
    return [
      finding(
        name,
        `${what} at ${address}${more} on the PCI bus, but the probe finds no device`,
        'No driver is bound to it, or its class directory is not visible in this container.',
        `Load the driver (lspci -k shows which is bound), or turn the probe off with --no-${name}.`,
      ),
    ];
  }
  return found.length > 0 ? found : [ok(name, `${countByKind(devices.map(({ device }) => device.kind))}${sourceOf(collection)}`)];
}

const sourceOf = (collection: FamilyCollection | undefined): string =>
  collection?.source === undefined || collection.reports.length === 0 ? '' : `, read by ${collection.source}`;

function countByKind(kinds: readonly string[]): string {
  if (kinds.length === 0) return 'no such hardware';
  const counts = [...new Set(kinds)].sort().map((kind) => `${kinds.filter((one) => one === kind).length} ${kind}`);
  return `${kinds.length} devices: ${counts.join(', ')}`;
}

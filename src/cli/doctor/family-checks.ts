import { refreshOptions } from '../../agent/options.ts';
import { systemClock } from '../../host/clock.ts';
import { Tree } from '../../host/fs/tree.ts';
import { pathOptions } from '../../host/options.ts';
import type { Collection, Problem } from '../../model/collection.ts';
import type { DeviceFamily } from '../../probes/family.ts';
import { FamilyRunner } from '../../supervisor/family-runner.ts';
import { IsolatedReads } from '../../supervisor/isolated-reads.ts';
import { supervisorProblems } from '../../supervisor/problems.ts';
import { type CheckContext, type CheckResult, finding, ok, skipped } from './check.ts';
import { hardwareOnBus } from './hardware.ts';

const CLOSE_GRACE_MS = 500;

/** Runs the probe of each family once, isolated from the others as in the agent, so that a hanging probe becomes a finding. */
export async function checkFamilies(context: CheckContext): Promise<CheckResult[]> {
  return (await Promise.all(context.families.map((family) => checkFamily(family, context)))).flat();
}

async function checkFamily(family: DeviceFamily, { configuration, stuck }: CheckContext): Promise<CheckResult[]> {
  const section = `probe.${family.name}`;
  if (!configuration.isOn(section)) return [skipped(section, `turned off by --no-${section}`)];
  const roots = configuration.section('path', pathOptions);
  const options = configuration.section(section, family.options);
  const { timeout } = configuration.section('refresh', refreshOptions);
  const crashes: string[] = [];
  const isolated = new IsolatedReads(systemClock);
  const events = { changed() {}, wake() {}, crashed: (_family: string, message: string) => void crashes.push(message) };
  const settings = { family: family.name, options, roots, timeoutMs: timeout };
  const runner = new FamilyRunner(settings, { clock: systemClock, isolated, events });
  await runner.refresh();
  const collection = runner.latest()?.collection;
  const { problems } = runner.state();
  if (!(await runner.close(CLOSE_GRACE_MS))) stuck();
  isolated.close();
  return judgeFamily(family, collection, problems, hardwareOnBus(new Tree(roots.sysfs), family.signs ?? []));
}

/** Compares the result of the probe with the devices on the PCI bus. */
export function judgeFamily(
  family: Pick<DeviceFamily, 'name' | 'problems'>,
  collection: Collection | undefined,
  problems: readonly Problem[],
  onBus: readonly { readonly address: string; readonly what: string }[],
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
    const { what, address } = onBus[0];
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

const sourceOf = (collection: Collection | undefined): string =>
  collection?.source === undefined || collection.reports.length === 0 ? '' : `, read by ${collection.source}`;

function countByKind(kinds: readonly string[]): string {
  if (kinds.length === 0) return 'no such hardware';
  const counts = [...new Set(kinds)].sort().map((kind) => `${kinds.filter((one) => one === kind).length} ${kind}`);
  return `${kinds.length} devices: ${counts.join(', ')}`;
}

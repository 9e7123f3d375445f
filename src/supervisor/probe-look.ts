import type { Host } from '../host/host.ts';
import type { Collection, DeviceReport, Problem, SideReport } from '../model/collection.ts';
import { hardwareKey } from '../model/hardware.ts';
import type { Finding } from '../model/health.ts';
import type { DeviceFamily, Probe } from '../probes/family.ts';
import { limitCollection, withoutExcluded } from './collection-limits.ts';
import { leaveOut } from './left-out.ts';

/** The code of the problem of {@link withSharedIdentities}. */
export const SAME_IDENTITY = 'same-identity';

/** Collects once and corrects what the probe cannot know: without descriptors or without sysfs no collection is complete. */
export async function collectChecked(probe: Probe, host: Host): Promise<Collection> {
  const shortages = shortagesOf(host);
  const collection = withSharedIdentities(await probe.collect());
  if (shortagesOf(host) !== shortages) {
    const problem = { code: 'descriptors-exhausted', message: 'files cannot be opened: no descriptors are left' };
    // It is unknown which values are missing, and what the facts lack that the probe keeps.
    probe.forget?.();
    const reports = collection.reports.map(({ read: _, ...report }) => report);
    return { ...collection, reports, listing: 'partial', problems: [...collection.problems, problem] };
  }
  if (collection.listing !== 'absent' || isMounted(host)) return collection;
  const problem = { code: 'sysfs-unusable', message: `${host.sys.root} is missing, empty or cannot be listed` };
  return { ...collection, listing: 'partial', problems: [...collection.problems, problem] };
}

/** What an agent gets of one collection. */
export async function look(
  probe: Probe,
  host: Host,
  { leftOut, exclude }: { readonly leftOut: readonly string[]; readonly exclude: unknown },
): Promise<Collection> {
  return limitCollection(withoutExcluded(leaveOut(await collectChecked(probe, host), leftOut, host.sys), exclude));
}

/** Reads devices alone; see {@link Probe.readAgain}. Without descriptors, their reads may lack values. */
export function readAgainChecked(probe: Probe, host: Host, ids: ReadonlySet<string>): readonly DeviceReport[] | undefined {
  const shortages = shortagesOf(host);
  const reports = probe.readAgain?.(ids);
  return shortagesOf(host) === shortages ? reports : undefined;
}

/**
 * Whether the machine may have devices of a family, checked without its probe. True when descriptors or sysfs are missing, so that the
 * probe runs and reports that problem.
 */
export function isPresent(
  { isPresent: check }: Pick<DeviceFamily, 'isPresent'>,
  host: Host,
  options: Readonly<Record<string, unknown>> = {},
): boolean {
  const shortages = shortagesOf(host);
  return check === undefined || check(host, options as never) || shortagesOf(host) !== shortages || !isMounted(host);
}

const shortagesOf = ({ sys, proc, dev }: Host): number => sys.shortages + proc.shortages + dev.shortages;

/** Whether sysfs is mounted. Every kernel has these directories, on any hardware. */
const isMounted = ({ sys }: Host): boolean => sys.list('class').length > 0 || sys.list('bus').length > 0;

/**
 * Joins the findings of devices that report one identity. The identity does not show which of them the agent remembers. A fault of one is
 * therefore a fault of all: each gets the findings of the others, whose instance names the other device.
 */
export function withSharedIdentities(collection: Collection): Collection {
  const groups = new Map<string, DeviceReport[]>();
  for (const report of collection.reports) {
    if (typeof report.device.identity !== 'string') continue;
    const key = hardwareKey(report.device);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [report]);
    else group.push(report);
  }
  const shared = [...groups.values()].filter(({ length }) => length > 1);
  if (shared.length === 0) return collection;
  const groupOf = new Map(shared.flatMap((group) => group.map((report) => [report, group])));
  return {
    ...collection,
    reports: collection.reports.map((report) => {
      const others = groupOf.get(report)?.filter((other) => other !== report) ?? [];
      const [read, outOfBand] = [[...findingsOf(others, 'read'), ...unreadOf(others, report)], findingsOf(others, 'outOfBand')];
      return {
        ...report,
        ...(report.read !== undefined && { read: withFindings(report.read, read) }),
        ...(outOfBand.length > 0 && { outOfBand: withFindings(report.outOfBand ?? { readings: [], findings: [] }, outOfBand) }),
      };
    }),
    problems: [...collection.problems, ...shared.map(problemOf)],
  };
}

const withFindings = <Report extends SideReport>(report: Report, others: readonly Finding[]): Report => ({
  ...report,
  findings: [...report.findings, ...others],
});

const findingsOf = (reports: readonly DeviceReport[], source: 'read' | 'outOfBand'): readonly Finding[] =>
  reports.flatMap(({ device, [source]: report }) =>
    (report?.findings ?? []).map((finding) => ({
      ...finding,
      instance: finding.instance === undefined ? device.id : `${finding.instance} of ${device.id}`,
    })),
  );

/**
 * A finding without an instance ends a condition for all instances of its device. Another device may have no finding of this condition,
 * because it was not read or because it sleeps. The condition of that device then goes on.
 */
const unreadOf = (others: readonly DeviceReport[], { read }: DeviceReport): readonly Finding[] =>
  others.flatMap((other) =>
    (read?.findings ?? [])
      .filter(({ type, instance }) => instance === undefined && !other.read?.findings.some((finding) => finding.type === type))
      .map(({ type, reason }) => {
        const { id } = other.device;
        return { type, instance: id, status: 'unknown', reason, message: `${type} of ${id} was not read` };
      }),
  );

function problemOf(group: readonly DeviceReport[]): Problem {
  const names = group.map(({ device }) => device.id).sort();
  return { code: SAME_IDENTITY, message: `${names.join(' and ')} report the same identity: ${group[0]?.device.identity}` };
}

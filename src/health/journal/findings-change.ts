import type { Allocation } from '../../model/allocation.ts';
import type { Device } from '../../model/device.ts';
import type { SourceFindings } from '../../model/device-record.ts';
import type { EventHolder } from '../../model/events.ts';
import type { Finding } from '../../model/health.ts';
import type { HealthInput } from '../engine/judge-device.ts';
import { conditionKey } from '../engine/memory.ts';
import type { DeviceChange, RecordedIdentity, SourceChange } from './findings-record.ts';

const SOURCES = ['read', 'outOfBand', 'use'] as const;

/** The sources of findings of a device, with their names. */
export function sourcesOf(device: HealthInput): readonly (readonly [string, SourceFindings])[] {
  const sources: [string, SourceFindings][] = [];
  for (const name of SOURCES) {
    const source = device[name];
    if (source !== undefined) sources.push([name, source]);
  }
  return sources;
}

/** Keys of findings: `Type`, `Type/instance`, and `Type#2` for the second finding on one condition. */
export function findingKeys(findings: readonly Finding[]): readonly string[] {
  const seen = new Map<string, number>();
  return findings.map((finding) => {
    const key = conditionKey(finding);
    const count = (seen.get(key) ?? 0) + 1;
    seen.set(key, count);
    return count === 1 ? key : `${key}#${count}`;
  });
}

/** Where the time of a source's findings comes from: undefined is the clock of the family, a number is its own wall clock. */
export type FixedTime = number | undefined;

/** The input of one device as the journal has it. */
export interface WrittenDevice {
  readonly input: HealthInput;
  readonly fixed: Readonly<Record<string, FixedTime>>;
}

/** What a new input changes; undefined when nothing changed except times and live texts. Without `before` it is everything. */
export function deviceChange(before: WrittenDevice | undefined, now: WrittenDevice): DeviceChange | undefined {
  const [was, is] = [before?.input, now.input];
  const change: DeviceChange = {
    ...(was !== undefined && isSameIdentity(was.device, is.device) ? {} : { device: identityOf(is.device) }),
    ...changed('missing', was?.missingSinceMs, is.missingSinceMs),
    ...changed('awaited', was?.awaitedSinceMs, is.awaitedSinceMs),
    ...((was?.isUnread ?? false) === (is.isUnread ?? false) ? {} : { unread: is.isUnread ?? false }),
    ...(areSameHolders(was?.holders ?? [], is.holders) ? {} : { holders: is.holders.map(holderOf) }),
    ...sourcesChange(before, now),
  };
  for (const _ in change) return change;
  return undefined;
}

function changed<K extends string>(name: K, was: number | undefined, is: number | undefined): { readonly [P in K]?: number | null } {
  return was === is ? {} : ({ [name]: is ?? null } as { readonly [P in K]?: number | null });
}

function identityOf({ family, id, identity, kind, aliases, uuid, pciAddress, parent, model }: Device): RecordedIdentity {
  return {
    family,
    id,
    kind,
    aliases,
    ...(identity === undefined ? {} : { identity }),
    ...(uuid === undefined ? {} : { uuid }),
    ...(pciAddress === undefined ? {} : { pciAddress }),
    ...(parent === undefined ? {} : { parent }),
    ...(model === undefined ? {} : { model }),
  };
}

function isSameIdentity(a: Device, b: Device): boolean {
  if (a === b) return true;
  const areAliasesSame = a.aliases.length === b.aliases.length && a.aliases.every((alias, at) => alias === b.aliases[at]);
  return areAliasesSame && COMPARED.every((field) => a[field] === b[field]);
}

/** The fields of {@link identityOf} without the aliases. */
const COMPARED = ['family', 'id', 'identity', 'kind', 'uuid', 'pciAddress', 'parent', 'model'] as const;

const holderOf = ({ namespace, pod, container, resource, deviceId }: Allocation): EventHolder => ({
  namespace,
  pod,
  container,
  resource,
  deviceId,
});

function areSameHolders(a: readonly Allocation[], b: readonly Allocation[]): boolean {
  if (a === b) return true;
  const isSame = (x: Allocation, y: Allocation): boolean =>
    x.pod === y.pod && x.namespace === y.namespace && x.container === y.container && x.deviceId === y.deviceId && x.resource === y.resource;
  return a.length === b.length && a.every((holder, index) => isSame(holder, b[index] as Allocation));
}

function sourcesChange(before: WrittenDevice | undefined, now: WrittenDevice): Pick<DeviceChange, 'sources'> {
  const known = new Map(before === undefined ? [] : sourcesOf(before.input));
  const changes: Record<string, SourceChange | null> = {};
  for (const [name, source] of sourcesOf(now.input)) {
    const was = known.get(name);
    known.delete(name);
    const at = now.fixed[name];
    const change: SourceChange = {
      ...findingsChange(was?.findings ?? [], source.findings),
      ...(at === before?.fixed[name] ? {} : { at: at ?? null }),
    };
    if (was === undefined || Object.keys(change).length > 0) changes[name] = change;
  }
  for (const name of known.keys()) changes[name] = null;
  return Object.keys(changes).length === 0 ? {} : { sources: changes };
}

/** The usual case is first: the same findings in the same order. It makes no new objects. */
function findingsChange(was: readonly Finding[], is: readonly Finding[]): SourceChange {
  if (was === is || (was.length === is.length && is.every((finding, at) => isSame(was[at] as Finding, finding, true)))) return {};
  const keys = findingKeys(was);
  const before = new Map(was.map((finding, at) => [keys[at] as string, finding]));
  const found: Record<string, Finding> = {};
  const counts: Record<string, number> = {};
  const seen = findingKeys(is);
  const present = new Set(seen);
  // A reader takes the findings in the order of their keys, and only the order of one key's findings has a meaning.
  for (const [at, finding] of is.entries()) {
    const key = seen[at] as string;
    const known = before.get(key);
    if (known !== undefined && isSame(known, finding, true)) continue;
    const isCount = finding.count !== undefined && Number.isFinite(finding.count) && Number.isFinite(known?.count);
    if (known !== undefined && isCount && isSame(known, finding, false)) counts[key] = finding.count as number;
    else found[key] = recorded(finding);
  }
  const lost = keys.filter((key) => !present.has(key));
  return {
    ...(Object.keys(found).length === 0 ? {} : { found }),
    ...(Object.keys(counts).length === 0 ? {} : { counts }),
    ...(lost.length === 0 ? {} : { lost }),
  };
}

function isSame(a: Finding, b: Finding, withCount: boolean): boolean {
  return (
    a.type === b.type &&
    a.instance === b.instance &&
    a.status === b.status &&
    (withCount ? Object.is(a.count, b.count) : (a.count === undefined) === (b.count === undefined)) &&
    Object.is(a.level, b.level) &&
    a.reason === b.reason &&
    a.severity === b.severity &&
    a.remedy === b.remedy &&
    Object.is((a as { ceiling?: number }).ceiling, (b as { ceiling?: number }).ceiling) &&
    (a as { atLeast?: unknown }).atLeast === (b as { atLeast?: unknown }).atLeast
  );
}

/**
 * A finding as the journal keeps it. The text of one that does not hold has a value that changes at each read, and a replay does not need
 * it. JSON has no number that is not finite, and such a count or level says nothing.
 */
function recorded(finding: Finding): Finding {
  if (finding.status === true) return finding;
  const { type, instance, reason, severity, remedy } = finding;
  const isUsable = Number.isFinite(finding.count ?? Number(finding.level ?? 0));
  if (isUsable) return { ...finding, message: '' };
  return {
    type,
    ...(instance === undefined ? {} : { instance }),
    reason,
    message: '',
    status: 'unknown',
    ...(severity === undefined ? {} : { severity }),
    ...(remedy === undefined ? {} : { remedy }),
  };
}

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { draOptions } from '../../kubelet/options.ts';
import type { AllocationState } from '../../model/snapshot.ts';
import { type CheckContext, type CheckResult, finding, ok, skipped } from './check.ts';

const NAME = 'claims';
const MOST_DRIVERS = 16;

/** The fields of an allocation that the check needs. The API of a running agent has the same fields. */
type ClaimState = { readonly driver: string; readonly unresolved?: string };
/** How the metadata files of a driver look on this node. */
export type MetadataState = 'no-directory' | 'not-written' | 'written';

/** Names each DRA driver with a device that cannot be joined to hardware. */
export async function checkClaims({ configuration, collect, ask }: CheckContext): Promise<CheckResult[]> {
  const { answer } = await ask('/api/v1/allocations');
  const claims = claimsIn(answer?.body) ?? (await collect()).allocations.flatMap(claimState);
  const directory = configuration.section('dra', draOptions)['metadata-dir'];
  return judgeClaims(claims, (driver) => {
    if (directory === '' || !existsSync(directory)) return 'no-directory';
    return existsSync(join(directory, driver, 'dra-device-metadata')) ? 'written' : 'not-written';
  });
}

export function judgeClaims(claims: readonly ClaimState[], metadataOf: (driver: string) => MetadataState): CheckResult[] {
  if (claims.length === 0) return [skipped(NAME, 'no container holds a device by a claim')];
  const drivers = [...new Set(claims.map(({ driver }) => driver))].sort();
  const findings = drivers.flatMap((driver) => {
    const own = claims.filter((claim) => claim.driver === driver);
    const lost = own.filter(({ unresolved }) => unresolved !== undefined);
    if (lost.length === 0) return [];
    const [cause, remedy] = ADVICE[metadataOf(driver)](driver);
    return [finding(NAME, `driver ${driver}: ${lost.length} of ${own.length} allocations have no device`, cause, remedy)];
  });
  if (findings.length > 0) return findings.slice(0, MOST_DRIVERS);
  return [ok(NAME, `${claims.length} ${claims.length === 1 ? 'allocation' : 'allocations'} of ${drivers.join(', ')}`)];
}

const RULE = 'Or name the devices in a rule of join.rules whose resource is the name of the driver. docs/dra.md explains both.';

const ADVICE: Readonly<Record<MetadataState, (driver: string) => readonly [cause: string, remedy: string]>> = {
  'no-directory': (driver) => [
    `The agent does not see the metadata files of ${driver}, and neither its CDI specs nor its names lead to a device.`,
    `Mount the directory /var/lib/kubelet/plugins read-only, or set --dra.metadata-dir. ${RULE}`,
  ],
  'not-written': (driver) => [
    `The driver ${driver} writes no metadata, and neither its CDI specs nor its names lead to a device.`,
    `Switch on the metadata of the driver, often the feature gate DeviceMetadata, if that costs no other feature of it. ${RULE}`,
  ],
  written: (driver) => [
    `The driver ${driver} writes metadata, but no probe finds the device that it names, or the device is missing.`,
    `Check the results of the probes in this report. The agent knows only devices of families whose probe runs. ${RULE}`,
  ],
};

function claimState({ allocation: { claim }, unresolved }: AllocationState): ClaimState[] {
  return claim === undefined ? [] : [unresolved === undefined ? { driver: claim.driver } : { driver: claim.driver, unresolved }];
}

/** Another program may answer at the address. */
function claimsIn(body: unknown): readonly ClaimState[] | undefined {
  const allocations = (body as { readonly allocations?: unknown } | null | undefined)?.allocations;
  if (!Array.isArray(allocations)) return undefined;
  return allocations.flatMap(({ claim, unresolved }: { claim?: { driver?: unknown }; unresolved?: unknown }): ClaimState[] => {
    if (typeof claim?.driver !== 'string') return [];
    return [typeof unresolved === 'string' ? { driver: claim.driver, unresolved } : { driver: claim.driver }];
  });
}

import { POOR_PLACEMENT } from '../health/policy/use-conditions.ts';
import type { LocalityFacts } from '../join/localities.ts';
import { nearerSet } from '../join/nearer-set.ts';
import type { ContainerLocality } from '../model/container-locality.ts';
import { deviceKey } from '../model/device.ts';
import type { HeldRecord } from '../model/device-record.ts';
import type { Finding, Verdict } from '../model/health.ts';

/**
 * Says of each GPU whether its container would be nearer to its other devices with GPUs that are free now. Only while the holders are known.
 * A GPU is free when no container holds it or a part of it, and its last verdict lets a container use it.
 */
export function placementFindings(
  held: readonly HeldRecord[],
  localities: readonly ContainerLocality[],
  verdicts: ReadonlyMap<string, Verdict>,
  facts: Pick<LocalityFacts, 'device' | 'roleOf' | 'cpuNodes'>,
): ReadonlyMap<string, Finding> {
  const gpus = held.filter(({ device }) => facts.roleOf(device.family) === 'gpu');
  const inUse = new Set(
    gpus.flatMap(({ key, device, holders }) =>
      holders.length === 0 ? [] : [key, ...(device.parent === undefined ? [] : [deviceKey({ family: device.family, id: device.parent })])],
    ),
  );
  const isUsable = (key: string): boolean => ['healthy', 'degraded'].includes(verdicts.get(key)?.state ?? 'unknown');
  const free = gpus.flatMap(({ key, missingSinceMs }) => (inUse.has(key) || missingSinceMs !== undefined || !isUsable(key) ? [] : [key]));
  const sound = { type: POOR_PLACEMENT, status: false, reason: 'NearerSetFree', message: 'no free set is nearer' } as const;
  const findings = new Map<string, Finding>(gpus.map(({ key }) => [key, sound]));
  for (const one of localities) {
    const found = nearerSet(one, free, facts);
    for (const key of found === undefined ? [] : one.gpus) {
      if (found === 'unknown' || found === undefined) findings.delete(key);
      else findings.set(key, { ...sound, status: true, message: messageOf(one, found.gpus, found.better) });
    }
  }
  return findings;
}

function messageOf(now: ContainerLocality, gpus: readonly string[], then: Pick<ContainerLocality, 'gpuPath' | 'nicPath'>): string {
  const ways = ({ gpuPath, nicPath }: Pick<ContainerLocality, 'gpuPath' | 'nicPath'>): string =>
    [...(gpuPath === undefined ? [] : [`${gpuPath} between GPUs`]), ...(nicPath === undefined ? [] : [`${nicPath} to the network`])].join(
      ', ',
    );
  const { namespace, pod, container } = now;
  return `${namespace}/${pod}/${container} has ${ways(now)}; with ${gpus.join(', ')} it would have ${ways(then)}`;
}

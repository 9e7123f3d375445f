import type { ContainerLocality } from '../model/container-locality.ts';
import type { Device } from '../model/device.ts';
import { comparePaths, nearness, placeOf } from '../model/locality.ts';
import { nearestSet } from '../model/nearest-set.ts';
import { type LocalityFacts, localityOf } from './localities.ts';

/** GPUs with which a container would be nearer to its other devices. */
export interface NearerSet {
  /** Keys of the GPUs, some of which it may hold. */
  readonly gpus: readonly string[];
  readonly better: Pick<ContainerLocality, 'gpuPath' | 'nicPath'>;
}

/**
 * Finds as many GPUs among those of the container and the free ones of the same model, with which no way is farther and one is nearer.
 * Undefined when there is no such set. `'unknown'`: a way of the container or of that set is unknown.
 */
export function nearerSet(
  { gpus, nics, gpuPath, nicPath }: ContainerLocality,
  free: readonly string[],
  facts: Pick<LocalityFacts, 'device' | 'roleOf' | 'cpuNodes'>,
): NearerSet | 'unknown' | undefined {
  const keyed = (keys: readonly string[]): readonly (readonly [string, Device])[] =>
    keys.flatMap((key) => {
      const device = facts.device(key);
      return device === undefined ? [] : [[key, device] as const];
    });
  const [own, fixed] = [keyed(gpus), keyed(nics.map(({ device }) => device))];
  const [first] = own;
  const others = keyed(free).filter(([, device]) => first !== undefined && own.every(([, one]) => isAlike(one, device)));
  if (others.length === 0) return undefined;
  if ((gpus.length > 1 && gpuPath === undefined) || (nics.length > 0 && nicPath === undefined)) return 'unknown';
  const all = [...own, ...others, ...fixed];
  const places = all.map(([, device]) => placeOf(device));
  const must = fixed.map((_, at) => own.length + others.length + at);
  const near = (a: number, b: number): number => nearness(places[a] as (typeof places)[number], places[b] as (typeof places)[number]);
  const chosen = nearestSet(all.length, must, own.length + fixed.length, near).flatMap((at) => (all[at] === undefined ? [] : [all[at]]));
  const better = localityOf(chosen, facts, []);
  if (better === undefined) return undefined;
  const steps = [stepOf(better.gpuPath, gpuPath), stepOf(better.nicPath, nicPath)];
  if (steps.includes('unknown')) return 'unknown';
  const isNearer = steps.includes('nearer') && !steps.includes('farther');
  return isNearer ? { gpus: better.gpus, better } : undefined;
}

const isAlike = (a: Device, b: Device): boolean => a.family === b.family && a.kind === b.kind && a.model === b.model;

function stepOf(then: string | undefined, now: string | undefined): 'nearer' | 'farther' | 'same' | 'unknown' {
  if (now === undefined) return 'same';
  if (then === undefined) return 'unknown';
  const order = comparePaths(then, now);
  return order < 0 ? 'nearer' : order > 0 ? 'farther' : 'same';
}

import { type DeviceSight, findOwners, type Owners, Resolver } from '../../join/resolve.ts';
import { defined } from '../../model/defined.ts';
import type { DeviceRecord, RecordsByKey } from '../../model/device-record.ts';
import type { AssembleSettings, Inputs } from '../inputs.ts';

/** Finds the devices of an allocation. */
export function resolverOf(
  { rules: fixed, served }: Pick<AssembleSettings, 'rules' | 'served'>,
  known: RecordsByKey,
  { claims = new Map(), claimTimes }: Pick<Inputs, 'claims' | 'claimTimes'> = {},
): Resolver {
  const rules = {
    ...fixed,
    claims,
    ...defined({ claimTimes }),
    sightOf: (key: string) => sightOf(known.get(key)),
  };
  const records = [...known.values()];
  const devices = records.map(({ device }) => device);
  return new Resolver(devices, served === undefined ? rules : { ...rules, served: served(records) });
}

const sightOf = (record: DeviceRecord | undefined): DeviceSight | undefined =>
  record && { isMissing: record.missingSinceMs !== undefined, firstMs: record.firstReadMs, lastMs: record.read?.startedMs };

/** The devices of each allocation, and the allocations of each device. */
export const ownersOf = (settings: Pick<AssembleSettings, 'rules' | 'served'>, known: RecordsByKey, inputs: Inputs): Owners =>
  findOwners(inputs.podResources, resolverOf(settings, known, inputs), (key) => known.get(key)?.missingSinceMs !== undefined);

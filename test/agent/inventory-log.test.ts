import { describe, expect, it } from 'vitest';
import { InventoryLog } from '../../src/agent/log-lines.ts';
import { createLogger } from '../../src/log/logger.ts';
import type { PluginResourceStats } from '../../src/model/agent-stats.ts';
import type { DeviceState, FamilyState, Snapshot } from '../../src/model/snapshot.ts';
import { deviceState } from '../plugin/support.ts';
import { familyState } from '../support/snapshots.ts';

const RAN: FamilyState = { ...familyState('toy'), succeeded: true };
const toys = (count: number): DeviceState[] => Array.from({ length: count }, (_, at) => deviceState({ id: `toy${at}` }));
const seen = (devices: readonly DeviceState[], families: readonly FamilyState[] = [RAN]): Snapshot =>
  ({ devices, families }) as unknown as Snapshot;

function logged(): { readonly log: InventoryLog; lines(): string[] } {
  const lines: string[] = [];
  const logger = createLogger({ level: 'info', format: 'text' }, { write: (line) => lines.push(line.replace(/^\S+ INFO {2}/, '').trim()) });
  return { log: new InventoryLog(logger), lines: () => lines.splice(0) };
}

describe('log of what the node has', () => {
  it('names the devices of a family once, and again when the set changes', () => {
    const { log, lines } = logged();
    log.update(seen([], [{ ...familyState('toy') }]), undefined);
    for (let times = 0; times < 3; times++) log.update(seen(toys(2)), undefined);
    expect(lines().at(-1)).toBe('devices found family=toy count=2 devices="toy0, toy1"');
    const [first, second] = toys(2) as [DeviceState, DeviceState];
    log.update(seen([first, { ...second, missingSinceMs: 1 }]), undefined);
    log.update(seen([first, { ...second, missingSinceMs: 1 }]), undefined);
    expect(lines()).toEqual(['devices found family=toy count=1 devices=toy0']);
    log.update(seen([]), undefined);
    expect(lines()).toEqual(['devices found family=toy count=0']);
  });

  it('names all families without a device in one line, once', () => {
    const { log, lines } = logged();
    for (let times = 0; times < 2; times++) log.update(seen([], [familyState('toy'), familyState('other')]), undefined);
    expect(lines()).toEqual(['no devices found families="toy, other"']);
  });

  it('names 16 devices, by the short names that the tools of the vendor print', () => {
    const { log, lines } = logged();
    const gpus = toys(40).map((state, at) => ({ ...state, device: { ...state.device, kind: 'gpu', index: String(at) } }));
    log.update(seen(gpus), undefined);
    expect(lines()[0]).toMatch(/^devices found family=toy count=40 devices="gpu 0, gpu 1, .*, gpu 15 and 24 more"$/);
  });

  it('tells once of each resource that the kubelet has', () => {
    const { log, lines } = logged();
    const resource = (registered: boolean) => ({
      resources: [{ resource: 'a.b/c', registered, healthy: 3, unhealthy: 1 } as unknown as PluginResourceStats],
    });
    log.update(seen([], []), resource(false));
    expect(lines()).toEqual([]);
    for (const registered of [true, false, true]) log.update(seen([], []), resource(registered));
    expect(lines()).toEqual(['the kubelet has a resource resource=a.b/c devices=4 unhealthy=1']);
    log.update(seen([], []), { resources: [] });
    log.update(seen([], []), resource(true));
    expect(lines()).toHaveLength(1);
  });
});

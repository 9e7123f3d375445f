import { afterEach, describe, expect, it } from 'vitest';
import { admitThroughPlugins, type WantedPod } from '../../src/sim/kubelet/admission.ts';
import { SimulatedDeviceManager } from '../../src/sim/kubelet/device-manager.ts';
import { PluginConnection } from '../../src/sim/kubelet/plugin-connection.ts';
import { holders, makeNode } from '../kubelet/support/node.ts';
import { until } from '../support/until.ts';
import { type Bench, deviceState, setUp, TOY } from './support.ts';

/** Holds back the answers of the plugin, one for each Allocate. */
class Gate {
  readonly waiting: { readonly ids: readonly string[]; open(): void }[] = [];

  pass(ids: readonly string[]): Promise<void> {
    return new Promise((open) => void this.waiting.push({ ids, open }));
  }

  openAll(): void {
    for (const { open } of this.waiting.splice(0)) open();
  }
}

class SlowConnection extends PluginConnection {
  readonly #gate: Gate;

  constructor(socket: string, gate: Gate) {
    super(socket);
    this.#gate = gate;
  }

  override async allocate(ids: readonly string[]): ReturnType<PluginConnection['allocate']> {
    const answer = await super.allocate(ids);
    await this.#gate.pass(ids);
    return answer;
  }
}

class SlowManager extends SimulatedDeviceManager {
  readonly gate = new Gate();

  protected override connectionTo(_resource: string, socket: string): PluginConnection {
    return new SlowConnection(socket, this.gate);
  }
}

let bench: Bench | undefined;
let manager: SlowManager | undefined;
afterEach(async () => {
  manager?.gate.openAll();
  await bench?.close();
  await manager?.stop();
  [bench, manager] = [undefined, undefined];
});

const wanting = (name: string, ...counts: readonly number[]): WantedPod => ({
  namespace: 'ml',
  name,
  uid: `uid-${name}`,
  containers: counts.map((count, at) => ({ name: `c${at}`, wants: [{ resource: TOY.resource, count }] })),
});

async function started(isOverlapping: boolean) {
  bench = setUp({ resources: [{ ...TOY, preferred: 'spread' }] });
  bench.store.publish(['a', 'b', 'c', 'd'].map((id) => deviceState({ id })));
  const slow = new SlowManager({ directory: bench.directory, isOverlapping });
  manager = slow;
  await slow.start();
  bench.plugin.start();
  await until(() => slow.devices(TOY.resource).length === 4);
  const node = makeNode();
  await node.kubelet.start();
  const poller = node.poller();
  const held = async (): Promise<string[]> => {
    await poller.refresh();
    return holders(poller)
      .map((line) => line.replace(/:.*/, ''))
      .sort();
  };
  return { slow, held, poller, kubelet: node.kubelet, admit: (pod: WantedPod) => admitThroughPlugins(node.kubelet, slow, pod) };
}

describe('while the plugin answers Allocate', () => {
  it('pods of a kubelet whose admissions overlap get different devices, and nobody holds one before its answer', async () => {
    const { slow, held, poller, kubelet, admit } = await started(true);
    const admissions = [admit(wanting('p', 2)), admit(wanting('q', 1)), admit(wanting('r', 1))];
    await until(() => slow.gate.waiting.length === 3);
    expect(new Set(slow.gate.waiting.flatMap(({ ids }) => ids)).size).toBe(4);
    expect(await held()).toEqual([]);
    expect(kubelet.pods().map(({ name }) => name)).toEqual(['p', 'q', 'r']);
    await expect(admit(wanting('s', 1))).rejects.toThrow('Requested: 1, Available: 0');
    slow.gate.waiting.splice(1, 1)[0]?.open();
    await admissions[1];
    expect(await held()).toHaveLength(1);
    slow.gate.openAll();
    await Promise.all(admissions);
    expect(await held()).toEqual(['p/c0=example.com/toy', 'p/c0=example.com/toy', 'q/c0=example.com/toy', 'r/c0=example.com/toy']);
    expect(new Set(poller.current().allocations.map(({ deviceId }) => deviceId)).size).toBe(4);
  });

  it('the first container of a pod holds its device, and the next one does not yet', async () => {
    const { slow, held, admit } = await started(false);
    const admission = admit(wanting('p', 1, 1));
    await until(() => slow.gate.waiting.length === 1);
    expect(await held()).toEqual([]);
    slow.gate.openAll();
    await until(() => slow.gate.waiting.length === 1);
    expect(await held()).toEqual(['p/c0=example.com/toy']);
    slow.gate.openAll();
    await admission;
    expect(await held()).toEqual(['p/c0=example.com/toy', 'p/c1=example.com/toy']);
  });
});

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { HolderSources } from '../../src/agent/holders.ts';
import { ProblemLog } from '../../src/agent/log-lines.ts';
import { systemClock } from '../../src/host/clock.ts';
import { createHost } from '../../src/host/host.ts';
import { podsApiOptions } from '../../src/kubelet/options.ts';
import { createChangeLog } from '../../src/log/changes.ts';
import { createLogger } from '../../src/log/logger.ts';
import type { DeviceProcess } from '../../src/model/collection.ts';
import { defaultValues } from '../../src/model/options.ts';
import type { PodResources } from '../../src/model/pod-resources.ts';
import { changes } from '../kubelet/support/changes.ts';
import { gpuPod, makeNode, temporaryDirectory } from '../kubelet/support/node.ts';
import { encodedPod, TestPodsApi } from '../kubelet/support/pods-api.ts';
import { coreSettings } from './core-settings.ts';

const train = (uid: string) => ({ ...gpuPod('train', 'gpu-0'), uid });

describe('the holders of devices', () => {
  let kubelet: ReturnType<typeof makeNode>['kubelet'];
  let api: TestPodsApi;
  let sources: HolderSources;
  let known: PodResources | undefined;
  let change: ReturnType<typeof changes>;

  beforeEach(async () => {
    const { kubelet: started, options } = makeNode();
    kubelet = started;
    await kubelet.start();
    api = new TestPodsApi(temporaryDirectory());
    await api.start();
    change = changes();
    const logger = createLogger({ level: 'error', format: 'json' }, { write: () => true });
    const root = temporaryDirectory();
    const podsApi = { ...defaultValues(podsApiOptions), socket: api.socket };
    const settings = { ...coreSettings([], root, options.socket), podResources: options, podsApi };
    sources = new HolderSources(settings, {
      clock: systemClock,
      logger,
      problems: new ProblemLog(createChangeLog(logger), []),
      host: createHost(settings.roots, systemClock, {}),
      observe: undefined,
      changed: () => {
        known = sources.poller.current();
        change.onChange();
      },
      known: () => known,
    });
  });

  afterEach(async () => {
    sources.stop();
    sources.close();
    await api.close();
  });

  const uid = (): string | undefined => [...(sources.inputs.pods?.values() ?? [])][0]?.uid;

  it('ask the Pods API again for another pod of the same name with the same device, and not while nothing changes', async () => {
    kubelet.admitPod(train('uid-1'));
    api.says(encodedPod('train', 'uid-1'));
    await sources.ask(false);
    expect(uid()).toBe('uid-1');
    const asked = api.calls;
    for (let round = 0; round < 5; round += 1) await sources.ask(false);
    expect(api.calls).toBe(asked);

    kubelet.removePod('ml', 'train');
    kubelet.admitPod(train('uid-2'));
    api.says(encodedPod('train', 'uid-2'));
    await sources.ask(false);
    expect(uid()).toBe('uid-2');
  });

  it('ask it for a fault, and once for each container that it did not name', async () => {
    kubelet.admitPod(train('uid-1'));
    const containers = (...ids: readonly string[]) => ({
      containerStatuses: ids.map((id) => ({ name: id, containerId: `containerd://${id}` })),
    });
    api.says(encodedPod('train', 'uid-1', containers('a')));
    await sources.ask(false);
    const before = api.calls;
    await sources.ask(true);
    expect(api.calls).toBe(before + 1);
    const process = (containerId: string): DeviceProcess => ({ pid: 1, containerId }) as DeviceProcess;
    sources.seen([process('a')]);
    await sources.pods?.idle();
    expect(api.calls).toBe(before + 1);
    api.says(encodedPod('train', 'uid-1', containers('b')));
    for (let round = 0; round < 3; round += 1) {
      sources.seen([process('b'), process('docker')]);
      await sources.pods?.idle();
    }
    expect(api.calls).toBe(before + 2);
    expect([...(sources.inputs.pods?.values() ?? [])][0]?.containers).toEqual([{ name: 'b', id: 'b' }]);
  });

  it('give up a pod that ended while the kubelet was away, when the checkpoint lacks it', async () => {
    kubelet.admitPod(train('uid-1'));
    kubelet.admitPod(gpuPod('eval', 'gpu-1'));
    await sources.ask(false);
    await kubelet.restart({ emptyForMs: Number.POSITIVE_INFINITY });
    await sources.ask(false);
    const pods = (): string[] => sources.inputs.podResources.allocations.map(({ pod }) => pod);
    expect(pods()).toEqual(['eval', 'train']);
    sources.poller.watch();
    kubelet.deliverPods();
    kubelet.removePod('ml', 'train');
    kubelet.admitPod(gpuPod('next', 'gpu-2'));
    await change.until(() => pods().join() === 'eval,next');
    expect(sources.inputs.podResources.held.size).toBe(0);
  });
});

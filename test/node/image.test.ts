import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Machine } from '../kubelet/real/support/machine.ts';
import { VendorPlugin } from '../kubelet/real/support/vendor-plugin.ts';
import { seriesOf } from '../kubelet/real/support/watched-node.ts';
import { seriesValue } from '../support/serve.ts';
import { type Container, daemonSetPod, entrypoint, layOutImage } from './support/agent-image.ts';
import { makeImage, whyNoImage } from './support/oci-image.ts';
import { KUBELET, type PodStatus, StockNode, whyNoNode } from './support/stock-node.ts';

const why = whyNoNode();
const WAIT = { interval: 100 };
const HCA = 'example.com/hca';

describe.skipIf(why !== undefined)('the image, as the DaemonSet runs it, on a stock kubelet', () => {
  const directory = mkdtempSync(join(tmpdir(), 'device-agent-image-'));
  let machine: Machine;
  let node: StockNode;
  let plugin: VendorPlugin;

  beforeAll(async () => {
    machine = new Machine({ infiniband: 2 });
    const [layout, archive] = [join(directory, 'layout'), join(directory, 'image.tar')];
    const whyStandIn = whyNoImage() ?? makeImage(layout, '--architectures=amd64', `--archive=${archive}`);
    node = new StockNode(KUBELET);
    await node.start();
    if (whyStandIn === undefined) await node.addArchive(archive);
    else {
      process.stderr.write(`the image on a stock kubelet has this machine's Node: ${whyStandIn}\n`);
      layOutImage(join(directory, 'root'));
      await node.addImage('docker.io/library/device-agent:0.1.0', join(directory, 'root'), entrypoint());
    }
    plugin = new VendorPlugin(node.pluginDirectory, { resource: HCA, devices: [{ id: 'mlx5_0' }, { id: 'mlx5_1' }] });
    await plugin.start();
  });

  afterAll(async () => {
    plugin?.close();
    await node?.close();
    machine?.remove();
    rmSync(directory, { recursive: true, force: true });
  });

  const page = async (): Promise<string> => {
    const address = ((await node.status('device-agent')) ?? ({} as PodStatus)).podIP;
    return address === undefined ? '' : node.fetch(`http://${address}:9835/metrics`);
  };

  const ready = async (name: string): Promise<string | undefined> =>
    (await node.status(name))?.conditions?.find(({ type }) => type === 'Ready')?.status;

  it('becomes ready without any privilege, and tells which container has which device', async () => {
    node.addManifest('device-agent', daemonSetPod({ sys: `${machine.root}/sys` }));
    await expect.poll(() => ready('device-agent'), WAIT).toBe('True');
    node.add({ name: 'train', containers: [{ name: 'main', limits: { [HCA]: 1 } }] });
    const holder = { pod: 'train-node-1', container: 'main', resource: HCA };
    await expect.poll(async () => seriesOf(await page(), 'container_device_allocation').length, WAIT).toBe(1);
    const text = await page();
    expect(seriesValue(text, 'container_device_allocation', holder)).toBe(1);
    expect(seriesValue(text, 'device_agent_podresources_up')).toBe(1);
    expect(seriesValue(text, 'device_agent_probe_success', { family: 'infiniband' })).toBe(1);
    expect(seriesOf(text, 'device_info').map(({ device }) => device)).toEqual(['mlx5_0', 'mlx5_1']);
    expect((await node.status('device-agent'))?.containerStatuses?.map(({ restartCount }) => restartCount)).toEqual([0]);
  });

  it('comes up where it gets no more CPU than it requests, without being begun anew', async () => {
    const pod = daemonSetPod({ sys: `${machine.root}/sys` });
    const [container] = pod.spec.containers;
    const { requests, limits } = (container as Container).resources;
    const resources = { requests, limits: { ...limits, cpu: requests.cpu } };
    const starved = {
      ...pod,
      metadata: { ...pod.metadata, name: 'starved' },
      spec: { ...pod.spec, containers: [{ ...container, resources }] },
    };
    node.addManifest('starved', starved);
    await expect.poll(() => ready('starved'), { interval: 500 }).toBe('True');
    expect((await node.status('starved'))?.containerStatuses?.map(({ restartCount }) => restartCount)).toEqual([0]);
  });
});

import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { credentials } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DevicePluginClient } from '../../src/generated/deviceplugin/v1beta1/api.ts';
import { listen } from '../support/kubelet/sockets.ts';
import { type ServedAgent, seriesValue } from '../support/serve.ts';
import { unless } from '../support/skipped.ts';
import { AgentOnStockNode, attributed, HCA } from './support/agent-on-stock-node.ts';
import { KUBELET, whyNoNode } from './support/stock-node.ts';

const BUSYBOX = '/bin/busybox';
const why = whyNoNode() ?? (existsSync(BUSYBOX) ? undefined : `there is no ${BUSYBOX}`);

const WAIT = { interval: 50 };
/** The memory limit of deploy/kustomize/base/manifests.yaml. */
const LIMIT_MIB = 256;

describe.skipIf(why !== undefined)(`a container with the directory of device plugins${unless(why === undefined, why ?? '')}`, () => {
  let on: AgentOnStockNode;
  let agent: ServedAgent;
  let control: string;
  const closers: (() => unknown)[] = [];

  /** Runs shell commands in the hostile container, in the directory that it has mounted. */
  const attack = async (script: string): Promise<void> => {
    writeFileSync(join(control, 'next.new'), `cd /plugins\n${script}\n`);
    renameSync(join(control, 'next.new'), join(control, 'next'));
    await expect.poll(() => existsSync(join(control, 'next')), WAIT).toBe(false);
  };
  const refreshes = async (): Promise<number> =>
    seriesValue(await agent.metrics(), 'device_agent_probe_runs_total', { family: 'infiniband' }) ?? 0;
  /** The agent refreshes, answers, is attributed right, and stays within its memory. */
  const expectSound = async (): Promise<void> => {
    const before = await refreshes();
    await expect.poll(refreshes, WAIT).toBeGreaterThan(before + 2);
    expect((await fetch(`${agent.url}/healthz`)).status).toBe(200);
    expect((await fetch(`${agent.url}/metrics`, { headers: { 'accept-encoding': 'gzip' } })).status).toBe(200);
    expect(attributed(await agent.metrics(), 'victim')).toHaveLength(2);
    const status = readFileSync(`/proc/${agent.child.pid}/status`, 'utf8');
    expect(Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) / 1_024, 'highest memory').toBeLessThan(LIMIT_MIB);
  };
  const checkpointProblem = async (reason: string): Promise<number | undefined> =>
    seriesValue(await agent.metrics(), 'device_agent_checkpoint_problem', { reason });
  const ownSocket = (): string => {
    // An attack leaves files with such names.
    const isSocket = (each: string): boolean => statSync(join(on.node.pluginDirectory, each)).isSocket();
    const name = readdirSync(on.node.pluginDirectory).find((each) => /^device-agent-.*\.sock$/.test(each) && isSocket(each));
    return join(on.node.pluginDirectory, name ?? 'none');
  };

  beforeAll(async () => {
    control = mkdtempSync(join(tmpdir(), 'control-'));
    const image = join(control, 'image/bin');
    mkdirSync(image, { recursive: true });
    copyFileSync(BUSYBOX, join(image, 'busybox'));
    on = new AgentOnStockNode(KUBELET);
    await on.node.start();
    await on.node.addImage('localhost/hostile:1', join(control, 'image'), ['/bin/busybox']);
    const loop =
      'while true; do if [ -f /control/next ]; then /bin/busybox sh /control/next; /bin/busybox rm /control/next; fi; /bin/busybox sleep 0.05; done';
    on.node.addManifest('hostile', {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'hostile', namespace: 'default' },
      spec: {
        terminationGracePeriodSeconds: 0,
        containers: [
          {
            name: 'main',
            image: 'localhost/hostile:1',
            imagePullPolicy: 'Never',
            args: ['sh', '-c', loop],
            volumeMounts: [
              { name: 'plugins', mountPath: '/plugins' },
              { name: 'control', mountPath: '/control' },
            ],
          },
        ],
        volumes: [
          { name: 'plugins', hostPath: { path: '/var/lib/kubelet/device-plugins' } },
          { name: 'control', hostPath: { path: control } },
        ],
      },
    });
    agent = await on.startAgent();
  });

  afterAll(async () => {
    for (const close of closers) close();
    await on?.close();
    rmSync(control, { recursive: true, force: true });
  });

  it('reaches that directory, beside a pod with two devices', async () => {
    await expect.poll(() => on.usable(), WAIT).toBe(4);
    on.node.add({ name: 'victim', containers: [{ name: 'main', limits: { [HCA]: 2 } }] });
    await expect.poll(async () => attributed(await agent.metrics(), 'victim').length, WAIT).toBe(2);
    await attack('/bin/busybox touch reached');
    expect(readdirSync(on.node.pluginDirectory)).toContain('reached');
    await expectSound();
  });

  it.each([
    ['a pipe', '/bin/busybox mkfifo kubelet_internal_checkpoint', 'not-a-file'],
    ['an endless device', '/bin/busybox ln -s /dev/zero kubelet_internal_checkpoint', 'not-a-file'],
    ['64 MB', '/bin/busybox dd if=/dev/zero of=kubelet_internal_checkpoint bs=1M count=64', 'too-large'],
    ['a text', 'echo forged > kubelet_internal_checkpoint', 'not-a-checkpoint'],
  ])('puts %s in place of the checkpoint: that is told, and nothing else suffers', async (_, place, reason) => {
    await attack(`/bin/busybox rm -f kubelet_internal_checkpoint; ${place}`);
    await expect.poll(() => checkpointProblem(reason), WAIT).toBe(1);
    await expectSound();
    expect(await on.usable()).toBe(4);
  });

  it('creates thousands of files, and replaces the checkpoint all the time', async () => {
    await attack(`
      i=0; while [ $i -lt 3000 ]; do : > decoy-$i.sock; i=$((i+1)); done
      i=0; while [ $i -lt 1000 ]; do echo '{}' > c.new; /bin/busybox mv c.new kubelet_internal_checkpoint; i=$((i+1)); done
      /bin/busybox rm -f decoy-*.sock`);
    await expectSound();
    expect(await on.usable()).toBe(4);
  });

  it.each([
    ['removes', '/bin/busybox rm -f device-agent-*.sock'],
    ['replaces by a file', 'for s in device-agent-*.sock; do /bin/busybox rm -f $s; : > $s; done'],
  ])("%s the plugin's socket: the resource comes back", async (_, script) => {
    await attack(script);
    await expect.poll(() => on.told(), WAIT).toBe(4);
    await expectSound();
  });

  it('calls the plugin as if it were the kubelet: it learns no more than the list, and leaves nothing behind', async () => {
    const descriptors = (): number => readdirSync(`/proc/${agent.child.pid}/fd`).length;
    const before = descriptors();
    const sockets = Array.from({ length: 200 }, (): Socket => connect(ownSocket()).on('error', () => {}));
    const client = new DevicePluginClient(`unix:${ownSocket()}`, credentials.createInsecure());
    closers.push(() => client.close());
    await expect.poll(() => sockets.filter(({ destroyed }) => destroyed).length, WAIT).toBeGreaterThan(150);
    for (const socket of sockets) socket.destroy();
    const devicesIds = Array.from({ length: 10_000 }, (_, at) => `unknown-${at}`);
    const refusal = await new Promise<Error | null>((resolve) => client.allocate({ containerRequests: [{ devicesIds }] }, resolve));
    expect(refusal?.message).toContain('and 9995 more');
    client.close();
    await expect.poll(descriptors, WAIT).toBeLessThanOrEqual(before + 2);
    await expectSound();
    expect(await on.usable()).toBe(4);
  });

  it("takes the place of the kubelet's socket: the resource is back with the kubelet", async () => {
    await attack('/bin/busybox rm -f kubelet.sock');
    const silent: Server = createServer();
    await listen(silent, join(on.node.pluginDirectory, 'kubelet.sock'));
    closers.push(() => silent.close());
    await expectSound();
    silent.close();
    await on.node.stopKubelet('TERM');
    await on.node.startKubelet();
    await expect.poll(() => on.told(), WAIT).toBe(4);
    await expectSound();
  });

  it('never keeps the agent from its end', async () => {
    await attack('/bin/busybox rm -f kubelet_internal_checkpoint; /bin/busybox mkfifo kubelet_internal_checkpoint');
    await expect.poll(() => checkpointProblem('not-a-file'), WAIT).toBe(1);
    expect(await agent.stop()).toBe(0);
  });
});

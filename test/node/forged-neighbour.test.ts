import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, uptime } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Machine } from '../kubelet/real/support/machine.ts';
import { forgedNames } from '../support/forged-records.ts';
import { type ServedAgent, seriesValue, serve } from '../support/serve.ts';
import { unless } from '../support/skipped.ts';
import { attributed } from './support/agent-on-stock-node.ts';
import { KUBELET, StockNode, whyNoNode } from './support/stock-node.ts';

const [BUSYBOX, KMSG, GPU] = ['/bin/busybox', '/dev/kmsg', 'example.com/gpu'];
/** How long the neighbour goes on. FORGERY_MINUTES=10 shows it for longer. */
const LASTS_MS = Number(process.env.FORGERY_MINUTES ?? 0.3) * 60_000;
const WAIT = { interval: 100 };
const missing = [BUSYBOX, KMSG].find((path) => !existsSync(path));
const why = whyNoNode() ?? (missing === undefined ? undefined : `there is no ${missing}`);

/** Takes the name in the file, and writes to address 0, so that the kernel logs a crash of a process of that name. */
const FORGE = `
#include <stdio.h>
#include <sys/prctl.h>
int main(int argc, char **argv) {
  char name[256] = {0};
  FILE *file = fopen(argv[1], "rb");
  if (file == NULL || fread(name, 1, sizeof name - 1, file) == 0) return 1;
  prctl(PR_SET_NAME, name);
  *(volatile int *)0 = argc;
  return 0;
}`;

/** Crashes under each name, writes to the log, and makes folders that look like cgroups of a pod. */
const LOOP = `while true; do
  for name in /names/*; do /bin/forge $name; done
  for name in /names/*; do /bin/busybox cat $name > /dev/kmsg; /bin/busybox cat $name > /proc/self/comm; done 2> /dev/null
  /bin/busybox mkdir -p /sys/fs/cgroup/memory/kubepods/pod00000000-0000-0000-0000-000000000000/x 2> /dev/null
  /bin/busybox touch /tmp/rounds; echo round >> /tmp/rounds
  /bin/busybox sleep 1
done`;

describe.skipIf(why !== undefined)(`a container whose processes imitate drivers${unless(why === undefined, why ?? '')}`, () => {
  const machine = new Machine({ nvidia: 2 });
  const control = mkdtempSync(join(tmpdir(), 'forging-'));
  let node: StockNode;
  let agent: ServedAgent;
  const usable = async (): Promise<number | undefined> =>
    seriesValue(await agent.metrics(), 'device_agent_kubelet_allocatable_devices', { resource: GPU });
  const faults = async (): Promise<readonly string[]> =>
    (await agent.metrics())
      .split('\n')
      .filter((line) => /^device_health_condition\{|^device_healthy\{.*\} 0$|^device_nvidia_xid_errors_total\{.*\} [1-9]/.test(line));
  /** Crashes that the log still has, since a time after the boot in seconds. The log keeps the newest records only. */
  const crashes = (sinceSeconds: number): number =>
    execFileSync('dmesg', { encoding: 'utf8', maxBuffer: 64 * 1_048_576 })
      .split('\n')
      .filter((line) => / segfault at 0 ip /.test(line) && Number(/^\[ *([\d.]+)\]/.exec(line)?.[1]) >= sinceSeconds).length;

  beforeAll(async () => {
    const bin = join(control, 'image/bin');
    const names = join(control, 'image/names');
    for (const folder of [bin, names, join(control, 'image/tmp')]) mkdirSync(folder, { recursive: true });
    copyFileSync(BUSYBOX, join(bin, 'busybox'));
    writeFileSync(join(control, 'forge.c'), FORGE);
    execFileSync('cc', ['-static', '-O0', '-o', join(bin, 'forge'), join(control, 'forge.c')]);
    const texts = ['0008:01:00.0', '0008:02:00.0'].flatMap((at) => Object.values(forgedNames(at)));
    for (const [index, text] of texts.entries()) writeFileSync(join(names, String(index)), text);
    const allocation = {
      strategies: ['envvar', 'device-specs'],
      env: { GPUS: '{id}' },
      deviceNodes: [{ path: '/dev/gpu', hostPath: '/dev/null' }],
    };
    const resources = [{ resource: GPU, select: { family: 'nvidia', kind: 'gpu' }, allocation }];
    writeFileSync(join(control, 'config.json'), JSON.stringify({ plugin: { resources } }));
    node = new StockNode(KUBELET);
    await node.start();
    await node.addImage('localhost/forging:1', join(control, 'image'), ['/bin/busybox']);
    const flags = machine.flags().filter((flag) => !flag.startsWith('--path.kmsg='));
    agent = await serve([
      ...[...flags, ...node.flags(), `--config.file=${join(control, 'config.json')}`],
      // The simulated GPUs work without a process, held or not.
      ...['--refresh.interval=1s', '--usage.busy-after=1h', '--usage.idle-after=1h', `--path.kmsg=${KMSG}`],
    ]);
  });
  afterAll(async () => {
    await agent?.stop('SIGKILL');
    await node?.close();
    machine.remove();
    rmSync(control, { recursive: true, force: true });
  });

  it('leaves each GPU healthy and allocatable, and its holder known', async () => {
    await expect.poll(usable, WAIT).toBe(2);
    node.add({ name: 'victim', containers: [{ name: 'main', limits: { [GPU]: 1 } }] });
    await expect.poll(async () => attributed(await agent.metrics(), 'victim').length, WAIT).toBe(1);
    const [before, beganSeconds] = [await faults(), uptime()];
    const container = {
      ...{ name: 'main', image: 'localhost/forging:1', imagePullPolicy: 'Never', args: ['sh', '-c', LOOP] },
      securityContext: { runAsUser: 65_534 },
    };
    node.addManifest('forging', {
      ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'forging', namespace: 'default' } },
      spec: { terminationGracePeriodSeconds: 0, containers: [container] },
    });
    await expect.poll(() => crashes(beganSeconds), WAIT).toBeGreaterThan(10);
    const end = Date.now() + LASTS_MS;
    let looks = 0;
    while (Date.now() < end) {
      expect(await faults(), 'conditions').toEqual(before);
      expect(await usable(), 'allocatable').toBe(2);
      expect(attributed(await agent.metrics(), 'victim')).toHaveLength(1);
      looks += 1;
      await new Promise((resolve) => setTimeout(resolve, 1_000));
    }
    process.stderr.write(
      `${looks} looks in ${LASTS_MS / 1_000} s beside ${crashes(beganSeconds)} crashes or more under names of drivers\n`,
    );
    node.add({ name: 'late', containers: [{ name: 'main', limits: { [GPU]: 1 } }] });
    await expect.poll(async () => attributed(await agent.metrics(), 'late').length, WAIT).toBe(1);
    expect(readFileSync(`/proc/${agent.child.pid}/status`, 'utf8')).toMatch(/State:\s+[RS]/);
  });
});

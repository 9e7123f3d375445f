import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { seriesValue } from '../../support/serve.ts';
import { describeReal } from './support/real-kubelet.ts';
import { closeAfterEach, podNamed, type WatchedNode, watchedNode } from './support/watched-node.ts';

closeAfterEach();

const GPU = 'example.com/gpu';
const WAIT = { interval: 20 };
const OLD_POD = '00000000-0000-4000-8000-0000000000aa';
const asking = (name: string) => ({ ...podNamed(name), containers: [{ name: 'rank', wants: { [GPU]: 1 } }] });

/** A node with one GPU that is shared by so many containers. The timer reads nothing while the test runs. */
async function node(replicas: number): Promise<WatchedNode> {
  const resources = [
    { resource: GPU, select: { family: 'nvidia', kind: 'gpu' }, idStrategy: 'uuid' as const, replicas, requireClean: true },
  ];
  const made = await watchedNode({ counts: { nvidia: 1 }, resources, flags: ['--refresh.interval=1h'] });
  use(made, [], 0);
  await expect.poll(() => made.kubelet.amounts(GPU), WAIT).toBe(`${replicas}/${replicas}`);
  return made;
}

interface Process {
  readonly pid: number;
  readonly uid: string;
  readonly mib: number;
}

/** What the driver tells from now on: these processes, each in a pod, and the memory in use. */
function use({ machine }: WatchedNode, processes: readonly Process[], usedMib: number): void {
  const path = join(machine.root, 'bin/nvidia-smi.xml');
  const entries = processes.map(
    ({ pid, mib }) => `<process_info><pid>${pid}</pid><type>C</type><used_memory>${mib} MiB</used_memory></process_info>`,
  );
  const text = readFileSync(path, 'utf8')
    .replace(/(<fb_memory_usage>.*?<used>)[^<]*/s, `$1${usedMib} MiB`)
    .replace(/<processes>.*?<\/processes>|<processes\/>/s, `<processes>${entries.join('')}</processes>`);
  for (const { pid, uid } of processes) {
    const folder = join(machine.root, 'proc', String(pid));
    mkdirSync(folder, { recursive: true });
    const container = String(pid).padStart(64, '0');
    writeFileSync(
      join(folder, 'cgroup'),
      `0::/kubepods.slice/kubepods-pod${uid.replaceAll('-', '_')}.slice/cri-containerd-${container}.scope\n`,
    );
    writeFileSync(join(folder, 'stat'), `${pid} (python3) S ${'1 '.repeat(48)}1\n`);
  }
  writeFileSync(path, text);
}

const refusals = async ({ agent }: WatchedNode): Promise<number | undefined> =>
  seriesValue(await agent.metrics(), 'device_agent_plugin_allocations_total', { resource: GPU, result: 'dirty-device' });

describeReal("a GPU that must be clean, before the kubelet's own device manager", () => {
  it('starts no container while a process of an ended pod or its memory is left, and starts one after them', async () => {
    const made = await node(1);
    const { kubelet } = made;
    use(made, [{ pid: 4_242, uid: OLD_POD, mib: 700 }], 700);
    const process = (await kubelet.run(asking('early'))).rank;
    expect(process?.error).toMatch(
      /PreStartContainer rpc failed.*is not clean.*process 4242 \(python3\) of pod with UID 00000000-0000-4000-8000-0000000000aa, 700 MiB/,
    );
    expect(await refusals(made)).toBe(1);
    await kubelet.remove(asking('early'));

    use(made, [], 700);
    expect((await kubelet.run(asking('second'))).rank?.error).toMatch(/no process explains 700 MiB of its memory/);
    await kubelet.remove(asking('second'));

    use(made, [], 0);
    const late = (await kubelet.run(asking('late'))).rank;
    expect(late).not.toHaveProperty('error');
    expect(late?.devices[GPU]).toHaveLength(1);
    expect(await refusals(made)).toBe(2);
  });

  it('starts the second container of a shared GPU beside the process of the first', async () => {
    const made = await node(2);
    const { kubelet } = made;
    const first = { ...asking('first'), uid: '00000000-0000-4000-8000-0000000000bb' };
    expect((await kubelet.run(first)).rank).not.toHaveProperty('error');
    use(made, [{ pid: 5_151, uid: first.uid, mib: 9_000 }], 9_000);
    expect((await kubelet.run(asking('second'))).rank).not.toHaveProperty('error');
  });

  it('starts no container while the driver does not answer', async () => {
    const made = await node(1);
    rmSync(join(made.machine.root, 'bin/nvidia-smi.xml'));
    expect((await made.kubelet.run(asking('p'))).rank?.error).toMatch(/PreStartContainer rpc failed/);
  });
});

import { join } from 'node:path';
import type { Agent } from './agent.ts';
import { type Ground, pause, startAgent } from './ground.ts';
import { held, type Line, notOffered } from './report.ts';
import { kubeletWithPods, NAMESPACE, Program, RESOURCE, uidOf } from './use-stage.ts';
import { kubeletOptions } from './workload.ts';

const SECTION = 'faults of programs';
/** Time in which a line of the log reaches the page: two refreshes. */
const SETTLE_MS = 3_000;

/**
 * Real faults on the first GPU, by the program `faults` in the folder `lab`: five programs of one pod assert within seconds, one writes to an
 * illegal address, one to a misaligned one; then the GPU is another pod's, whose program asserts. Told by the log, and by the library.
 */
export async function xidStage(ground: Ground): Promise<readonly Line[]> {
  const { lab } = ground;
  if (lab === undefined) return [notOffered(SECTION, 'faults', 'no folder with the program of faults: --lab')];
  const byLog = await turns(ground, lab, 'by the log', ['--path.kmsg=/dev/kmsg']);
  const byEvents = await turns(ground, lab, 'by the library', ['--path.kmsg=/none']);
  return [...byLog, ...byEvents, ...(await sharing(ground, lab))];
}

async function fault(ground: Ground, lab: string, pod: string, mode: string, delayS = 0.2): Promise<void> {
  const program = new Program(ground, pod, [join(lab, 'faults'), mode, String(delayS), '256']);
  try {
    await program.until(`${mode}:`, 30_000);
  } finally {
    await program.end();
  }
}

const counted = async (agent: Agent, pod: string, xid: number): Promise<number | undefined> =>
  (await agent.page()).value('container_device_nvidia_xid_errors_total', { pod, xid: String(xid) });

async function turns(ground: Ground, lab: string, how: string, options: readonly string[]): Promise<readonly Line[]> {
  const [gpu = ''] = ground.uuids;
  const kubelet = await kubeletWithPods(ground, gpu, ['p1']);
  const lines: Line[] = [];
  const line = (what: string, expected: unknown, told: unknown): void => {
    lines.push(held(SECTION, `${what}, ${how}`, String(expected), String(told), told === expected, gpu));
  };
  const agent = await startAgent(ground, [...kubeletOptions(kubelet), ...options], false);
  try {
    const before = (await agent.page()).value('device_nvidia_xid_errors_total', { device: gpu, xid: '43' }) ?? 0;
    await pause(SETTLE_MS);
    for (let n = 0; n < 5; n += 1) await fault(ground, lab, 'p1', 'assert');
    await fault(ground, lab, 'p1', 'oob');
    await fault(ground, lab, 'p1', 'misaligned');
    await pause(SETTLE_MS);
    line('asserts of the first pod', 5, await counted(agent, 'p1', 43));
    line('illegal addresses of the first pod', 1, await counted(agent, 'p1', 31));
    line('misaligned addresses of the first pod', 1, await counted(agent, 'p1', 13));
    kubelet.removePod(NAMESPACE, 'p1');
    kubelet.admitPod({
      ...{ namespace: NAMESPACE, name: 'p2', uid: uidOf('p2') },
      containers: [{ name: 'cuda', devices: [{ resource: RESOURCE, id: gpu }] }],
    });
    await pause(SETTLE_MS);
    await fault(ground, lab, 'p2', 'assert');
    await pause(SETTLE_MS);
    line('asserts of the second pod', 1, await counted(agent, 'p2', 43));
    const after = (await agent.page()).value('device_nvidia_xid_errors_total', { device: gpu, xid: '43' }) ?? 0;
    line('asserts of the GPU', 6, after - before);
    const told = (await agent.events()).filter(({ transition }) => transition === 'fault');
    line('events of faults', 8, told.length);
    lines.push({
      section: SECTION,
      what: `the last event, ${how}`,
      expected: '',
      agent: JSON.stringify(told.at(-1)),
      verdict: 'measured',
      gpu,
    });
  } finally {
    await agent.stop();
    await kubelet.stop();
  }
  return lines;
}

/** Two pods on one GPU: the program that faults was listed for some seconds. */
async function sharing(ground: Ground, lab: string): Promise<readonly Line[]> {
  const [gpu = ''] = ground.uuids;
  const kubelet = await kubeletWithPods(ground, gpu, ['a', 'b']);
  const program = new Program(ground, 'a', [join(lab, 'faults'), 'assert', '6', '256']);
  const agent = await startAgent(ground, [...kubeletOptions(kubelet), ...program.options, '--path.kmsg=/dev/kmsg'], false);
  try {
    await program.until('assert:', 30_000);
    await pause(SETTLE_MS);
    const [a, b] = [await counted(agent, 'a', 43), await counted(agent, 'b', 43)];
    return [
      held(SECTION, 'assert of one of two pods, in that pod', '1', String(a), a === 1, gpu),
      held(SECTION, 'assert of one of two pods, in the other', '0 or absent', String(b), (b ?? 0) === 0, gpu),
    ];
  } finally {
    await program.end();
    await agent.stop();
    await kubelet.stop();
  }
}

import { numberOf } from './figures.ts';
import { type Ground, pause, startAgent } from './ground.ts';
import { held, type Line, notOffered } from './report.ts';
import { kubeletOptions, kubeletWith, Load, POD, placeInPod } from './workload.ts';

const SECTION = 'a CUDA process in a pod';
const MEBIBYTES = 512;
const [SETTLE_MS, WAIT_MS] = [4_000, 20_000];
/** A GPU that only fills memory is busy all the time by the driver's account. */
const BUSY = 0.5;
const MIB = 2 ** 20;

/** A real process on the first GPU: whose it is, what it holds, what it does; then it stops, and is killed. */
export async function processStage(ground: Ground): Promise<readonly Line[]> {
  const [gpu = ''] = ground.uuids;
  const idle = await powerOf(ground, gpu);
  const load = await Load.start(ground, 0, MEBIBYTES);
  if (typeof load === 'string') return [notOffered(SECTION, 'a CUDA process', load)];
  const kubelet = await kubeletWith(ground, gpu);
  const placed = placeInPod(ground, load.pid);
  try {
    const agent = await startAgent(ground, [...kubeletOptions(kubelet), ...placed.options]);
    try {
      const line = (what: string, expected: string, told: string, isHeld: boolean): Line =>
        held(SECTION, what, expected, told, isHeld, gpu);
      const mine = (device: Awaited<ReturnType<typeof agent.device>>) => device?.processes?.find(({ pid }) => pid === load.pid);
      const device = await agent.untilDevice(gpu, (each) => mine(each) !== undefined && each.holders.length > 0, WAIT_MS);
      await pause(SETTLE_MS);
      const page = await agent.page();
      const printed = ground.smi.document().gpus.find(({ uuid }) => uuid === gpu);
      const theirs = numberOf(printed?.processes?.find(({ pid }) => pid === load.pid)?.memory ?? '');
      const ours = mine(device);
      if (ours === undefined && printed?.processes?.every(({ pid }) => pid !== load.pid) === true)
        return [notOffered(SECTION, 'a CUDA process', 'nvidia-smi does not print it either: its pids are those of another PID namespace')];
      const busy = page.value('device_utilization_ratio', { device: gpu, engine: 'gpu' });
      const watts = page.value('device_power_watts', { device: gpu, sensor: 'gpu' });
      const lines = [
        line('process of the GPU', `pid ${load.pid}`, ours === undefined ? 'none' : `pid ${ours.pid}`, ours !== undefined),
        { ...line('pod of the process', POD.uid, ours?.podUid ?? 'none', ours?.podUid === POD.uid), note: placed.how },
        line('holder of the GPU', `${POD.namespace}/${POD.name}`, JSON.stringify(device?.holders ?? []), isHolder(device?.holders)),
        line(
          'memory of the process',
          theirs === undefined ? `at least ${MEBIBYTES} MiB` : `${theirs / MIB} MiB`,
          String(ours?.memoryUsedBytes),
          ours?.memoryUsedBytes !== undefined &&
            ours.memoryUsedBytes >= MEBIBYTES * MIB &&
            (theirs === undefined || Math.abs(ours.memoryUsedBytes - theirs) <= 2 * MIB),
        ),
        line('GPU busy', `at least ${BUSY}`, String(busy), busy !== undefined && busy >= BUSY),
        watts === undefined || idle === undefined
          ? notOffered(SECTION, 'power under load', 'the board does not tell its power')
          : line('power under load', `above ${idle} W`, `${watts} W`, watts > idle),
      ];
      load.signal('SIGSTOP');
      const stopped = await agent.untilDevice(gpu, (each) => mine(each) !== undefined, WAIT_MS);
      await pause(SETTLE_MS);
      lines.push(
        line(
          'the stopped process keeps its GPU',
          `pid ${load.pid}, ${POD.uid}`,
          `pid ${mine(stopped)?.pid}, ${mine(stopped)?.podUid}`,
          mine(stopped)?.podUid === POD.uid,
        ),
      );
      await load.end();
      const ended = await agent.untilDevice(gpu, (each) => mine(each) === undefined, WAIT_MS);
      lines.push(
        line(
          'the killed process leaves its GPU',
          'no process',
          mine(ended) === undefined ? 'no process' : `pid ${load.pid}`,
          mine(ended) === undefined,
        ),
      );
      return lines;
    } finally {
      await agent.stop();
    }
  } finally {
    await load.end();
    placed.remove();
    await kubelet.close();
  }
}

const isHolder = (holders: readonly { readonly pod?: string; readonly namespace?: string }[] = []): boolean =>
  holders.some(({ pod, namespace }) => pod === POD.name && namespace === POD.namespace);

async function powerOf(ground: Ground, device: string): Promise<number | undefined> {
  const agent = await startAgent(ground);
  const watts = (await agent.page()).value('device_power_watts', { device, sensor: 'gpu' });
  await agent.stop();
  return watts;
}

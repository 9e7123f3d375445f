import { dirname } from 'node:path';
import { describe, expect, it } from 'vitest';
import { minutes, seconds } from '../../../src/model/duration.ts';
import type { WatchedNode } from '../../false-alarms/watched-node.ts';
import { addressOf, type Board, bind, boardWith, informationAt, type Shown, type Source } from './unshown-node.ts';

const SOURCES: readonly Source[] = ['library', 'command'];
/** What the library or the command tells while no GPU has the driver. */
const notLoaded: Shown = {
  gpus: [],
  lines: ["NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."],
  failsWith: 9,
};
/** The library's code of a container without the device nodes. */
const NO_PERMISSION = 4;
const NONE = { 0: '', 1: '' };
const UNUSABLE = expect.stringMatching(
  /^unhealthy; DriverUnusable "(?:NVML nvmlInit_v2: Driver Not Loaded|NVIDIA-SMI has failed [^"]+)"; DeviceNotRead "was never read"$/,
);
const failedAt = (index: number): string => `nvidia: probe of ${addressOf(index)} failed with error -1`;

/** State, conditions that count, and in brackets those that do not count yet; of the GPU at a place, whatever its name is. */
function of(node: WatchedNode, index: number): string {
  const found = node.snapshot.devices.filter(({ device }) => device.pciAddress === addressOf(index));
  if (found.length !== 1) return `${found.length} devices`;
  const { verdict: { state = '', conditions = [], pending = [] } = {} } = found[0] ?? {};
  const text = ({ type, message }: { type: string; message: string }): string => `${type} "${message}"`;
  return [state, ...conditions.map(text), ...pending.map((one) => `[${text(one)}]`)].join('; ');
}
const both = (node: WatchedNode): readonly string[] => [of(node, 0), of(node, 1)];
const unboundAt = (index: number): string => `no driver is bound to PCI function ${addressOf(index)}`;

describe.each(SOURCES)('the driver of two GPUs, by the %s,', (source) => {
  const start = (board: Partial<Board>, shown: Shown, log: readonly string[] = []) => boardWith(source, { count: 2, ...board }, shown, log);

  it('that is installed and has none of them is not usable', async () => {
    const { node } = await start({ drivers: NONE }, notLoaded);
    expect([both(node), node.problems]).toEqual([[UNUSABLE, UNUSABLE], ['driver-not-loaded']]);
    await node.pass(minutes(5));
    expect([both(node), node.problems]).toEqual([[UNUSABLE, UNUSABLE], ['driver-not-loaded']]);
  });

  it('that could start none of them says so at the first look', async () => {
    const log = ['NVRM: The NVIDIA probe routine failed for 2 device(s).', failedAt(0), failedAt(1)];
    const { node } = await start({ drivers: NONE }, notLoaded, log);
    for (const index of [0, 1]) expect(of(node, index)).toContain(`; InitializationFailed "${failedAt(index)}"`);
    for (const index of [0, 1]) expect(of(node, index)).toMatch(/^unhealthy; DriverUnusable /);
  });

  it('that could start one of them is judged by that, at once and by the other one', async () => {
    const log = ['NVRM: The NVIDIA probe routine failed for 1 device(s).', failedAt(1)];
    const { node } = await start({ drivers: { 1: '' } }, { gpus: [0] }, log);
    const notStarted = `NotStarted "${unboundAt(1)}, and one is to another device of this model"`;
    expect(both(node)).toEqual(['healthy', `unhealthy; InitializationFailed "${failedAt(1)}"; [${notStarted}]`]);
    await node.pass(minutes(3));
    expect(both(node)).toEqual(['healthy', `unhealthy; InitializationFailed "${failedAt(1)}"; ${notStarted}`]);
  });

  it('that leaves one of them may return within a minute, and it is unhealthy then until the driver has it', async () => {
    const { node, show } = await start({}, { gpus: [0, 1] });
    bind(node, 1, undefined);
    node.tree.hide('away', dirname(informationAt(1)), { kind: 'absent' });
    show({ gpus: [0] });
    await node.pass(seconds(50));
    expect(both(node)).toEqual(['healthy', expect.stringMatching(/^healthy/)]);
    await node.pass(seconds(50));
    const unbound = ['healthy', `unhealthy; DriverUnbound "${unboundAt(1)}"`];
    expect(both(node)).toEqual(unbound);
    await node.restart();
    await node.pass(seconds(90));
    expect(both(node)).toEqual(unbound);
    bind(node, 1, 'nvidia');
    node.tree.take('away');
    show({ gpus: [0, 1] });
    await node.pass(minutes(2));
    expect(both(node)).toEqual(['healthy', 'healthy']);
  });

  it('makes device nodes when a program needs them, so one that is missing is no fault', async () => {
    const { node } = await start({ files: { 'dev/nvidia0': '', 'dev/nvidia1': '', 'dev/nvidiactl': '' } }, { gpus: [0, 1] });
    node.tree.hide('node', 'dev/nvidia1', { kind: 'absent' });
    await node.pass(minutes(4));
    expect(both(node)).toEqual(['healthy', 'healthy']);
  });

  it('that the container of the agent does not have any more leaves them unknown, and no fault', async () => {
    const { node, show } = await start({}, { gpus: [0, 1] });
    for (const path of ['sys', 'dev', 'proc/driver']) node.tree.hide('blind', path, { kind: 'absent' });
    if (source === 'command') node.tree.hide('blind', 'bin/nvidia-smi', { kind: 'absent' });
    else show({ gpus: [], failsWith: NO_PERMISSION });
    await node.restart();
    await node.pass(minutes(10));
    for (const said of both(node)) expect(said).toMatch(/^unknown; DeviceNotRead /);
    node.tree.take('blind');
    show({ gpus: [0, 1] });
    await node.pass(minutes(2));
    expect(both(node)).toEqual(['healthy', 'healthy']);
  });
});

import { afterEach, describe, expect, it } from 'vitest';
import { usageOptionsFor } from '../../src/accounting/options.ts';
import { useLimits, whyDirty } from '../../src/health/occupancy/explained.ts';
import { systemClock } from '../../src/host/clock.ts';
import type { DeviceUse, OwnedProcess } from '../../src/model/device-use.ts';
import { defaultValues } from '../../src/model/options.ts';
import { type PluginResource, pluginResourceProblems } from '../../src/model/plugin-resource.ts';
import type { WhyDirty } from '../../src/plugin/service.ts';
import { family as nvidia } from '../../src/probes/nvidia/index.ts';
import { until } from '../support/until.ts';
import { type Bench, deviceState, listed, setUp } from './support.ts';

const CLEAN: PluginResource = { resource: 'example.com/clean', select: { family: 'toy' }, requireClean: true };
const MIB = 1_048_576;
const limits = useLimits(defaultValues(usageOptionsFor([nvidia])));

/** A device that the new pod holds, as read after the kubelet asked. */
const use = (part: Partial<DeviceUse> = {}): DeviceUse => ({
  monotonicMs: 0,
  isForHoldersOnly: true,
  hasParts: false,
  isPart: false,
  areHoldersKnown: true,
  isReadWithHolders: true,
  holders: ['ml/new'],
  isHeld: true,
  processes: [],
  hasAllProcesses: true,
  memoryUsedBytes: 0,
  ports: [],
  isPortFaultTold: false,
  ...part,
});
const process = (part: Partial<OwnedProcess> & Pick<OwnedProcess, 'owner'>): OwnedProcess => ({
  pid: 42,
  name: 'python3',
  memoryUsedBytes: 1_000 * MIB,
  ...part,
});

describe('why no container starts on a device', () => {
  it.each([
    [
      'a process of another pod',
      use({ processes: [process({ owner: 'pod', podName: 'ml/old' })] }),
      /process 42 \(python3\) of pod ml\/old, 1000 MiB/,
    ],
    ['a process outside of pods', use({ processes: [process({ owner: 'outside' })] }), /outside of pods/],
    [
      'a process of the last holder',
      use({ processes: [process({ owner: 'former', podName: 'ml/old', isStuck: true })] }),
      /waits in the kernel/,
    ],
    ['a process of an unknown owner', use({ processes: [process({ owner: 'unknown' })] }), /of an unknown owner/],
    ['a process while the kubelet does not answer', use({ processes: [process({ owner: 'holder' })], areHoldersKnown: false }), /kubelet/],
    ['memory that nobody explains', use({ memoryUsedBytes: 300 * MIB }), /no process explains 300 MiB/],
    ['memory beyond that of the other holder', use({ processes: [process({ owner: 'holder' })], memoryUsedBytes: 1_300 * MIB }), /300 MiB/],
    [
      'a holder whose memory is not read',
      use({ processes: [{ pid: 1, name: 'x', owner: 'holder' }], memoryUsedBytes: 900 * MIB }),
      /could not be read/,
    ],
    ['memory that is not read', (({ memoryUsedBytes: _, ...rest }) => rest)(use()), /could not be read/],
    ['processes that are not all read', use({ hasAllProcesses: false }), /could not be read/],
    ['no reading', undefined, /could not be read/],
    ['a family without processes', use({ isForHoldersOnly: false }), /not known/],
  ] as const)('is %s', (_, given, why) => {
    expect(whyDirty(given, limits)).toMatch(why);
  });

  it.each([
    ['an empty device', use()],
    ['a kubelet that does not answer, while nothing uses the device', use({ areHoldersKnown: false })],
    ['the other holder of a shared device', use({ processes: [process({ owner: 'holder' })], memoryUsedBytes: 1_256 * MIB })],
    ['the MPS server', use({ processes: [process({ owner: 'outside', name: 'nvidia-cuda-mps' })], memoryUsedBytes: 1_000 * MIB })],
    ['a little memory', use({ memoryUsedBytes: 256 * MIB })],
  ] as const)('is not %s', (_, given) => {
    expect(whyDirty(given, limits)).toBeUndefined();
  });
});

let bench: Bench | undefined;
afterEach(async () => bench?.close());

/** A pod that got the device, and the start of its container. */
async function started(parts: { readonly whyDirty?: WhyDirty; readonly refresh?: () => Promise<void> }): Promise<() => Promise<void>> {
  const made = setUp({ resources: [CLEAN], parts });
  bench = made;
  await made.manager.start();
  made.store.publish([deviceState({ id: 't0' })]);
  made.plugin.start();
  await until(() => listed(made.manager, CLEAN.resource).length === 1, 'registered');
  const grant = await made.manager.allocate({ podUid: 'u', container: 'main', resource: CLEAN.resource, count: 1 });
  return () => made.manager.preStart(grant as never, CLEAN.resource);
}

const resultsOf = (): Readonly<Record<string, number>> => bench?.plugin.stats().resources[0]?.allocations ?? {};

describe('a resource that must be clean', () => {
  it('lets the kubelet ask before a container starts, reads again, and refuses a dirty device in words', async () => {
    let why: string | undefined = 'it is used by process 42';
    const reads: string[] = [];
    const start = await started({
      whyDirty: (key) => {
        reads.push(key);
        return why;
      },
      refresh: async () => void reads.push('refresh'),
    });
    await expect(start()).rejects.toThrow(
      /code = FailedPrecondition desc = device "t0" of example.com\/clean is not clean, so no container starts on it: it is used by process 42/,
    );
    expect(reads).toEqual(['refresh', 'toy/t0']);
    expect(resultsOf()).toMatchObject({ ok: 1, 'dirty-device': 1, internal: 0 });
    why = undefined;
    await start();
    expect(resultsOf(), 'a start is not counted again').toMatchObject({ ok: 1, 'dirty-device': 1 });
  });

  it('tells the check from when on a read is new enough', async () => {
    const asked: number[] = [];
    let readAtMs = 0;
    const start = await started({
      whyDirty: (_, sinceMs) => {
        asked.push(sinceMs);
        return undefined;
      },
      refresh: async () => {
        readAtMs = systemClock.monotonic();
      },
    });
    await start();
    expect(asked).toHaveLength(1);
    expect(asked[0]).toBeLessThanOrEqual(readAtMs);
  });

  it('refuses everything without a check', async () => {
    await expect((await started({}))()).rejects.toThrow('nothing is known of its processes');
  });

  it('cannot be made of device nodes', () => {
    const problems = pluginResourceProblems([{ resource: 'example.com/serial', paths: ['/dev/ttyUSB*'], requireClean: true }]);
    expect(problems).toEqual([expect.stringContaining('cannot have both "paths" and "requireClean"')]);
  });
});

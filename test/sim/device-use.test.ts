import { describe, expect, it } from 'vitest';
import { DeviceUse } from '../../src/sim/device-use.ts';
import type { SimulatedPod } from '../../src/sim/kubelet/pods.ts';

const pod = (uid: string, ...ids: readonly string[]): SimulatedPod => ({
  namespace: 'n',
  name: uid,
  uid,
  containers: [{ name: 'worker', devices: ids.map((id) => ({ resource: 'r', id })) }],
});
const holder = (podUid: string, isIdle = false) => ({ podUid, program: 'worker', isIdle });
const NONE: ReadonlySet<string> = new Set();

describe('the use of simulated devices', () => {
  it('adds up over all pods and stays when they have ended', () => {
    const use = new DeviceUse();
    expect(use.at(0, [], NONE)).toEqual({});
    expect(use.at(1_000, [pod('one', 'a', 'b')], NONE)).toEqual({
      a: { activeMs: 0, holder: holder('one') },
      b: { activeMs: 0, holder: holder('one') },
    });
    expect(use.at(3_000, [pod('two', 'b')], NONE)).toEqual({
      a: { activeMs: 2_000 },
      b: { activeMs: 2_000, holder: holder('two') },
    });
    expect(use.at(6_000, [], NONE)).toEqual({ a: { activeMs: 2_000 }, b: { activeMs: 5_000 } });
    expect(use.at(9_000, [], NONE)).toEqual({ a: { activeMs: 2_000 }, b: { activeMs: 5_000 } });
  });

  it('is none on a device that its holder does not use', () => {
    const use = new DeviceUse();
    use.at(0, [pod('one', 'a', 'b')], new Set(['b']));
    expect(use.at(5_000, [pod('one', 'a', 'b')], new Set(['b']))).toEqual({
      a: { activeMs: 5_000, holder: holder('one') },
      b: { activeMs: 0, holder: holder('one', true) },
    });
  });

  it('never falls when the clock does', () => {
    const use = new DeviceUse();
    use.at(5_000, [pod('one', 'a')], NONE);
    expect(use.at(1_000, [pod('one', 'a')], NONE)).toEqual({ a: { activeMs: 0, holder: holder('one') } });
  });
});

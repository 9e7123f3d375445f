import { describe, expect, it } from 'vitest';
import type { Collection } from '../../../src/model/collection.ts';
import { hopper } from './scripted-script.ts';
import { started } from './started.ts';

/** What the library tells of the licence. Mode 2 is a guest with a vGPU, 1 a whole board in a virtual machine. */
async function told(more: Readonly<Record<string, number>>) {
  const { reports }: Collection = await started({ ...hopper(0), values: { ...hopper(0).values, ...more } }).at(0);
  const { readings = [], findings = [] } = reports[0]?.read ?? {};
  return [
    [...readings].find(({ metric }) => metric === 'device_nvidia_vgpu_licensed')?.value,
    findings.find(({ type }) => type === 'VgpuUnlicensed')?.status,
  ];
}

describe('the licence of a vGPU by the library', () => {
  it.each([
    [{ virtualization: 2, license: 0 }, [0, true]],
    [{ virtualization: 2, license: 1 }, [1, false]],
    [{ virtualization: 2 }, [undefined, undefined]],
    [{ virtualization: 1, license: 0 }, [undefined, undefined]],
    [{ license: 0 }, [undefined, undefined]],
  ])('of %j is %j', async (more, expected) => {
    expect(await told(more as Record<string, number>)).toEqual(expected);
  });
});

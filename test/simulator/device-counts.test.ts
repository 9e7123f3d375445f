import { describe, expect, it } from 'vitest';
import { UserError } from '../../src/errors.ts';
import { deviceCounts } from '../../src/simulator/node.ts';

const FAMILIES = ['amdgpu', 'nvidia'];

describe('counts of simulated devices', () => {
  it('are read from family=count', () => {
    expect(deviceCounts(['amdgpu=2', ' nvidia=0 '], FAMILIES)).toEqual({ amdgpu: 2, nvidia: 0 });
    expect(deviceCounts([], FAMILIES)).toEqual({});
  });

  it.each(['amdgpu', 'amdgpu=', 'amdgpu=-1', 'amdgpu=201', 'amdgpu=1=2', '=1', '', 'amd=1'])('are refused as %j', (entry) => {
    expect(() => deviceCounts([entry], FAMILIES)).toThrow(UserError);
  });
});

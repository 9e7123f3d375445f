import { describe, expect, it } from 'vitest';
import { GonePorts } from '../../../src/probes/infiniband/gone-ports.ts';
import { NEW_PORT } from '../../../src/probes/infiniband/port-memory.ts';

const memories = (losses: number) => new Map([['1', { ...NEW_PORT, losses }]]);

describe('what is remembered of the ports of devices that went', () => {
  it('is taken by the device when it comes back, once', () => {
    const gone = new GonePorts();
    gone.keep('mlx5_0', memories(3));
    expect(gone.take('mlx5_0')).toEqual(memories(3));
    expect(gone.take('mlx5_0').size).toBe(0);
  });

  it('is forgotten of those that went first when there are too many', () => {
    const gone = new GonePorts(2);
    for (const [losses, device] of ['a', 'b', 'a', 'c'].entries()) gone.keep(device, memories(losses));
    expect(['a', 'b', 'c'].map((device) => gone.take(device).get('1')?.losses)).toEqual([2, undefined, 3]);
  });
});

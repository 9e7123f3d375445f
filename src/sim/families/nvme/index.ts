import { seconds } from '../../../model/duration.ts';
import type { FamilySimulation } from '../../family-simulation.ts';
import { simulate } from './simulate.ts';

export const simulation: FamilySimulation = {
  sizes: [{ name: 'nvme', about: 'NVMe drive', default: 0, most: 200 }],
  simulate,
  faults: [
    {
      name: 'hot',
      about: 'The drive is at 83 °C, above its critical temperature.',
      kinds: ['controller'],
      story: { lastsMs: seconds(30), recoversMs: seconds(140) },
    },
  ],
  workloads: [
    { namespace: 'database', name: 'orders', container: 'postgres', wants: [['device-agent.dev/nvme', 1]] },
    { namespace: 'storage', name: 'cache', container: 'server', wants: [['device-agent.dev/nvme', 1]] },
  ],
};

import { seconds } from '../../../model/duration.ts';
import type { FamilySimulation } from '../../family-simulation.ts';
import { simulate } from './simulate.ts';

export const simulation: FamilySimulation = {
  sizes: [{ name: 'netdev', about: 'network adapter', default: 0, most: 64 }],
  simulate,
  faults: [
    {
      name: 'port-down',
      about: 'The cable is unplugged: the interface has no carrier.',
      kinds: ['pf'],
      story: { lastsMs: seconds(50), recoversMs: seconds(70) },
    },
  ],
  workloads: [
    { namespace: 'telecom', name: 'upf', container: 'gateway', wants: [['intel.com/sriov_net', 2]] },
    { namespace: 'telecom', name: 'router', container: 'packets', wants: [['intel.com/sriov_net', 1]] },
  ],
};

import { seconds } from '../../../model/duration.ts';
import type { FamilySimulation } from '../../family-simulation.ts';
import { simulate } from './simulate.ts';

export const simulation: FamilySimulation = {
  sizes: [
    { name: 'infiniband', about: 'InfiniBand HCA', default: 4, most: 112 },
    // The HCAs have them in turn.
    { name: 'infiniband.vf', about: 'InfiniBand virtual function', default: 4, most: 4_000 },
  ],
  simulate,
  // Faults of the simulated cards. Each concerns the port of a physical function, and with it the virtual functions of the card.
  faults: [
    {
      name: 'port-down',
      about: 'The cable is unplugged: the port searches for the other end of the link.',
      kinds: ['pf'],
      isFatal: true,
      story: { lastsMs: seconds(50), recoversMs: seconds(70) },
    },
    { name: 'errors', about: 'The cable is bad: the link retrains every few seconds, and packets arrive damaged.', kinds: ['pf'] },
    { name: 'silent', about: 'The programs that use the card send and receive nothing. The port stays up.', kinds: ['pf'] },
    { name: 'unreadable', about: 'The firmware hangs: a read of the state of the port fails with EIO.', kinds: ['pf'] },
  ],
  workloads: [
    { namespace: 'simulation', name: 'mpi', container: 'rank', wants: [['device-agent.dev/vf', 1]] },
    { namespace: 'storage', name: 'nvmf', container: 'target', wants: [['rdma/', 1]] },
  ],
};

import { minutes } from '../../model/duration.ts';

export const licenceConditions = {
  VgpuUnlicensed: {
    class: 'self-clearing',
    severity: 'degraded',
    reasons: ['Unlicensed', 'Licensed'],
    meaning:
      'The vGPU has no licence, so the driver slows it down. The guest gets one from the licence server that its configuration names.',
    remedy: 'inspect',
    source: `nvidia-smi: vgpu_software_licensed_product/license_status, of a GPU with the virtualization mode VGPU`,
    forMs: minutes(2),
    recoveryMs: 0,
  },
} as const;

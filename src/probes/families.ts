// Written by `npm run generate` from the folder names. Not edited by hand.
import type { DeviceFamily } from './family.ts';

/** Every device family, loaded only when it is needed. */
export const familyLoaders: Readonly<Record<string, () => Promise<DeviceFamily>>> = {
  amdgpu: async () => (await import('./amdgpu/index.ts')).family,
  fpga: async () => (await import('./fpga/index.ts')).family,
  infiniband: async () => (await import('./infiniband/index.ts')).family,
  intelgpu: async () => (await import('./intelgpu/index.ts')).family,
  nvidia: async () => (await import('./nvidia/index.ts')).family,
};

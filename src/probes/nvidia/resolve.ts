import { normalizePciAddress } from '../../host/pci/pci.ts';
import type { Resolve } from '../../model/allocation.ts';
import type { ClaimName } from '../../model/claim-hardware.ts';
import type { Device } from '../../model/device.ts';

/**
 * Resolves the ids of NVIDIA's plugins and of similar plugins:
 * `GPU-…::N`, `MIG-…::N` (replicas of time slicing and MPS) · `MIG-GPU-…/gi/ci` (drivers before 470) · `nvidia0`, `nvidia0/gi1`,
 * `nvidia0/vgpu3` (GKE, by minor number) · `all` (WSL) · `tegra` (the one GPU of a Jetson) · PCI addresses in any spelling (passthrough) · DRA `gpu-<minor>` of
 * driver `gpu.nvidia.com`. Its name of a MIG device (`gpu-0-mig-1g5gb-19-4`) has the profile and the start of the memory. Only a privileged user can ask
 * the driver for that start, and an instance of the same profile may be another pod's: the name names no instance.
 */
export const resolve: Resolve = ({ resource, deviceId, claim }, devices) => {
  if (claim !== undefined) {
    const minor = claim.driver === 'gpu.nvidia.com' ? /^gpu-(\d+)$/.exec(claim.device)?.[1] : undefined;
    return minor === undefined ? [] : ids(byMinor(Number(minor), undefined, devices));
  }
  const plain = deviceId.replace(/::\d+$/, '');
  const named = devices.filter((device) => [device.id, ...device.aliases].some((name) => name.toLowerCase() === plain.toLowerCase()));
  if (named.length > 0) return ids(named);
  const ofGpu = /^MIG-(GPU-[0-9a-f-]+)\/\d+\/\d+$/i.exec(plain)?.[1]?.toLowerCase();
  if (ofGpu !== undefined) return ids(devices.filter((device) => device.uuid?.toLowerCase() === ofGpu && !isSplit(device, devices)));
  const gke = /^nvidia(\d+)(?:\/gi(\d+))?(?:\/vgpu\d+)?$/.exec(plain);
  if (gke !== null) return ids(byMinor(Number(gke[1]), gke[2], devices));
  const address = normalizePciAddress(plain);
  if (address !== undefined) return ids(devices.filter((device) => device.kind === 'gpu' && device.pciAddress === address));
  const gpus = devices.filter((device) => device.kind === 'gpu');
  if (plain === 'all' && resource.startsWith('nvidia.com/')) return ids(gpus);
  if (plain === 'tegra' && gpus.length === 1) return ids(gpus);
  return [];
};

/** The driver's name of a MIG device has the start of its memory, which the device does not tell: only whole GPUs have a name here. */
export function claimNames({ kind, minor }: Device): readonly ClaimName[] {
  return kind === 'gpu' && minor !== undefined ? [{ driver: 'gpu.nvidia.com', device: `gpu-${minor}` }] : [];
}

const ids = (devices: readonly Device[]): readonly string[] => devices.map((device) => device.id);

function byMinor(minor: number, gpuInstance: string | undefined, devices: readonly Device[]): readonly Device[] {
  const kind = gpuInstance === undefined ? 'gpu' : 'mig';
  return devices.filter(
    (device) => device.kind === kind && device.minor === minor && (gpuInstance === undefined || device.gpuInstance === Number(gpuInstance)),
  );
}

/** The driver lists no instance of a lost GPU. The holder of one that was never listed then holds a part of the GPU. */
const isSplit = ({ id }: Device, devices: readonly Device[]): boolean => devices.some(({ parent }) => parent === id);

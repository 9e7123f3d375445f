import { normalizePciAddress } from '../../host/pci/pci.ts';
import type { Resolve } from '../../model/allocation.ts';
import type { ClaimName } from '../../model/claim-name.ts';
import type { Device } from '../../model/device.ts';

/**
 * Resolves the ids of NVIDIA's plugins and of similar plugins:
 * `GPU-…::N`, `MIG-…::N` (replicas of time slicing and MPS) · `MIG-GPU-…/gi/ci` (drivers before 470) · `nvidia0`, `nvidia0/gi1`,
 * `nvidia0/vgpu3` (GKE, by minor number) · `all` (WSL) · `tegra` (the one GPU of a Jetson) · PCI addresses in any spelling (passthrough) · DRA `gpu-<minor>` and
 * `gpu-<minor>-mig-<profile>-<profile id>-<start>` of driver `gpu.nvidia.com`.
 */
export const resolve: Resolve = ({ resource, deviceId, claim }, devices) => {
  if (claim !== undefined) return claim.driver === 'gpu.nvidia.com' ? ids(byClaim(claim.device, devices)) : [];
  const plain = deviceId.replace(/::\d+$/, '');
  const named = devices.filter((device) => [device.id, ...device.aliases].some((name) => name.toLowerCase() === plain.toLowerCase()));
  if (named.length > 0) return ids(named);
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

/** Removes the characters of a profile (`1g.10gb+me`) that a DNS label cannot contain. */
const plainProfile = (profile: string): string => profile.toLowerCase().replaceAll(/[^a-z0-9]/g, '');

/** The name of a dynamic MIG device has the GPU and the profile, but no instance. It resolves only when exactly one instance fits. */
function byClaim(name: string, devices: readonly Device[]): readonly Device[] {
  const mig = /^gpu-(\d+)-mig-(.+)-\d+-\d+$/.exec(name);
  if (mig !== null) {
    const [, minor, profile] = mig;
    const fitting = devices.filter(
      (device) =>
        device.kind === 'mig' && device.minor === Number(minor) && plainProfile(device.profile ?? '') === plainProfile(profile as string),
    );
    return fitting.length === 1 ? fitting : [];
  }
  const minor = /^gpu-(\d+)$/.exec(name)?.[1];
  return minor === undefined ? [] : byMinor(Number(minor), undefined, devices);
}

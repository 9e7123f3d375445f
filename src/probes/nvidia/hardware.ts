import type { Host } from '../../host/host.ts';

/** PCI vendor of NVIDIA, and classes of what the driver serves: display controllers and 3D controllers. */
const VENDOR = '0x10de';
const DISPLAY_CLASS = /^0x03/;
/** GPUs that were handed to virtual machines on purpose. */
const PASSED_ON = new Set(['vfio-pci', 'nvgrace_gpu_vfio_pci']);

/** Nodes of the driver on servers, below Windows, and on Jetson boards: the last two have no PCI function. */
const DRIVER_NODES = ['nvidiactl', 'dxg', 'nvhost-ctrl-gpu', 'nvgpu'];

/** Whether there may be a GPU to ask for: hardware on the bus, or a driver. */
export function mayHaveGpus(host: Host): boolean {
  return DRIVER_NODES.some((name) => host.dev.exists(name)) || hardwareOnBus(host);
}

/** Whether the machine has NVIDIA GPUs for the driver to show; then it is a problem when nothing shows them. */
export function hardwareOnBus({ sys, proc }: Host): boolean {
  if (proc.exists('driver/nvidia/version')) return true;
  return sys.list('bus/pci/devices').some((address) => {
    const folder = `bus/pci/devices/${address}`;
    if (sys.text(`${folder}/vendor`)?.toLowerCase() !== VENDOR || !DISPLAY_CLASS.test(sys.text(`${folder}/class`) ?? '')) return false;
    return !PASSED_ON.has(sys.link(`${folder}/driver`)?.split('/').at(-1) ?? '');
  });
}

import type { Host } from '../../host/host.ts';

/** PCI vendor of NVIDIA, and class of the devices that its driver supports: display controllers and 3D controllers. */
const VENDOR = '0x10de';
const DISPLAY_CLASS = /^0x03/;
/** Drivers of GPUs that are passed through to virtual machines on purpose. */
const PASSTHROUGH_DRIVERS = new Set(['vfio-pci', 'nvgrace_gpu_vfio_pci']);

/** Device nodes of the driver on servers, in WSL, and on Jetson boards. WSL and Jetson have no PCI function. */
const DRIVER_NODES = ['nvidiactl', 'dxg', 'nvhost-ctrl-gpu', 'nvgpu'];

/** Returns true when the machine may have a GPU: hardware on the bus, or a driver. */
export function mayHaveGpus(host: Host): boolean {
  return DRIVER_NODES.some((name) => host.dev.exists(name)) || hardwareOnBus(host);
}

/** Returns true when the machine has NVIDIA GPUs that the driver should show. It is a problem if no source shows them. */
export function hardwareOnBus({ sys, proc }: Host): boolean {
  if (proc.exists('driver/nvidia/version')) return true;
  return sys.list('bus/pci/devices').some((address) => {
    const folder = `bus/pci/devices/${address}`;
    if (sys.text(`${folder}/vendor`)?.toLowerCase() !== VENDOR || !DISPLAY_CLASS.test(sys.text(`${folder}/class`) ?? '')) return false;
    return !PASSTHROUGH_DRIVERS.has(sys.link(`${folder}/driver`)?.split('/').at(-1) ?? '');
  });
}

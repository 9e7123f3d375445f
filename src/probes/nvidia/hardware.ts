import type { Host } from '../../host/host.ts';
import { functionsOnBus } from '../../host/pci/functions.ts';
import { isPciAddress } from '../../host/pci/pci.ts';
import type { PciSign } from '../../model/declaration.ts';

/** VGA and 3D controllers: the classes to which NVIDIA's driver binds. Source: nv-pci-table.c of the open kernel modules. */
export const signs: readonly PciSign[] = [{ vendor: '0x10de', classes: ['0300', '0302'], what: 'NVIDIA GPU' }];

/** Name of the driver, and its directory below `/proc`, with a folder for each GPU to which it is bound. */
export const DRIVER = 'nvidia';
const PROC = 'driver/nvidia';

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
  if (proc.exists(`${PROC}/version`)) return true;
  return functionsOnBus(sys, signs).some(({ driver = '' }) => !PASSTHROUGH_DRIVERS.has(driver));
}

/** Returns the addresses of bound GPUs; empty when the kernel does not show them. */
export const boundGpus = ({ proc }: Pick<Host, 'proc'>): readonly string[] =>
  proc.exists(`${PROC}/gpus`) ? proc.list(`${PROC}/gpus`).filter(isPciAddress) : [];

/** What the kernel driver tells of a GPU, before any program opens it. */
export interface ProcFacts {
  /** Absent when the driver never started the GPU: it then prints question marks. */
  readonly uuid: string | undefined;
  readonly model: string | undefined;
  readonly minor: string | undefined;
  /** The driver was told to leave the GPU out. */
  readonly isExcluded: boolean;
  /** The driver tells something of the GPU. */
  readonly isListed: boolean;
}

/** Parses `/proc/driver/nvidia/gpus/<address>/information`, which has lines such as `Device Minor: 	 0`. */
export function procFacts({ proc }: Pick<Host, 'proc'>, pciAddress: string): ProcFacts {
  const text = proc.text(`${PROC}/gpus/${pciAddress}/information`);
  const fact = (name: string, form: string): string | undefined => new RegExp(`^${name}:\\s*(${form})\\s*$`, 'im').exec(text ?? '')?.[1];
  return {
    uuid: fact('GPU UUID', 'GPU-[0-9a-f-]{36}'),
    model: fact('Model', '.+?'),
    minor: fact('Device Minor', '\\d+'),
    // Older drivers say "Blacklisted".
    isExcluded: fact('GPU (?:Excluded|Blacklisted)', 'Yes') !== undefined,
    isListed: text !== undefined,
  };
}

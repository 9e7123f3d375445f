import type { Tree } from '../../host/fs/tree.ts';
import { isPciAddress, vfioNodeOf } from '../../host/pci/pci.ts';
import { isAsleepState, isSuspended } from '../../host/pci/pcie.ts';
import type { DeviceReport } from '../../model/collection.ts';
import type { Device } from '../../model/device.ts';
import type { Reading } from '../../model/metric.ts';
import type { LastIdentities } from '../kit/last-identity.ts';
import type { Pace } from '../kit/pace.ts';
import { readPciFunction } from '../kit/pcie/function.ts';
import { pcieFindings } from '../kit/pcie/health.ts';
import { PcieReader, pcieReadings } from '../kit/pcie/pcie.ts';
import { metrics } from './metrics.ts';

/** Functions that a virtual machine or another user-space driver uses. */
export const VFIO = 'bus/pci/drivers/vfio-pci';
/** Class of an NVMe controller. PCI Code and ID Assignment Specification: 01 storage, 08 non-volatile memory. */
const NVME_CLASS = /^0x0108/;

/** PCI addresses of the NVMe controllers that `vfio-pci` has. The class is a record of the kernel, so the read wakes nothing. */
export function passedThrough(sys: Tree): readonly string[] {
  return sys.list(VFIO).filter((name) => isPciAddress(name) && NVME_CLASS.test(sys.text(`bus/pci/devices/${name}/class`) ?? ''));
}

/** A drive that a virtual machine has. Its driver is not the kernel's, so only the PCI function can be read. */
export class PassedThrough {
  readonly address: string;
  readonly device: Device;
  readonly #sys: Tree;
  readonly #pcie: PcieReader;

  constructor(sys: Tree, address: string, identities: LastIdentities) {
    this.address = address;
    this.#sys = sys;
    this.#pcie = new PcieReader(sys, address);
    this.device = { ...deviceOf(sys, address), ...identities.of(address, undefined) };
  }

  report(pace: Pace): DeviceReport {
    const directory = `bus/pci/devices/${this.address}`;
    const text = (file: string): string | undefined => this.#sys.reread(`${directory}/${file}`).text?.trim();
    const isAsleep = isSuspended(text('power/runtime_status')) || isAsleepState(text('power_state'));
    const asleep: Reading = { metric: metrics.asleep.name, value: isAsleep ? 1 : 0 };
    // An idle function of vfio-pci sleeps, and a read of its link would wake it.
    if (isAsleep) return { device: this.device, read: { readings: [asleep], findings: [] } };
    const sample = this.#pcie.read(pace);
    return { device: this.device, read: { readings: [asleep, ...pcieReadings(sample)], findings: pcieFindings(sample) } };
  }

  close(): void {
    this.#sys.forget(`bus/pci/devices/${this.address}`);
  }
}

function deviceOf(sys: Tree, address: string): Device {
  const vfioNode = vfioNodeOf(sys, address);
  const { physicalFunction: _, ...pci } = readPciFunction(sys, address);
  const nodes = vfioNode === undefined ? {} : { characterDevices: ['/dev/vfio/vfio', vfioNode] };
  return { family: 'nvme', id: address, kind: 'controller', aliases: [], ...pci, driver: 'vfio-pci', ...nodes };
}

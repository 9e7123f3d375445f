import { basename } from 'node:path';
import { doesPciFunctionAnswer, isAsleepState } from '../../host/pci/pcie.ts';
import { PCIE_EVERY_MS, type PcieSample, pcieReadings, readPcie } from '../pcie.ts';
import { pcieErrorFindings, pcieFindings } from '../pcie-health.ts';
import type { Facts } from './facts.ts';
import type { Survey } from './survey.ts';

/** `readable`: go on with the files of the driver. They would wake an `asleep` function, and a `gone` one gives garbage. */
export type PciPresence = 'readable' | 'asleep' | 'gone';

/** Everything about the PCIe side of one physical function, and whether its driver's files may be read. */
export function addPcie(facts: Facts, { host: { sys }, memory }: Survey, address: string): PciPresence {
  const answers = doesPciFunctionAnswer(sys, address);
  const driver = sys.link(`bus/pci/devices/${address}/driver`);
  if (driver !== undefined) addDriver(facts, basename(driver));
  if (answers === false) {
    facts.findings.push(...pcieErrorFindings({ link: { isAsleep: false }, aer: { errors: [], totals: {} }, answers }));
    return 'gone';
  }
  const isAsleep = isAsleepState(sys.text(`bus/pci/devices/${address}/power_state`));
  const read = (): PcieSample => readPcie(sys, address);
  const { link, aer } = isAsleep ? read() : memory.atMostEvery(`${address}/pcie`, () => PCIE_EVERY_MS, read);
  const sample = { link, aer, ...(answers !== undefined && { answers }) };
  facts.readings.push(...pcieReadings(sample));
  facts.findings.push(...pcieFindings(sample));
  return isAsleep ? 'asleep' : 'readable';
}

/** Whether a board has a driver, where the one that tells of it is not bound. One given to another driver on purpose, as to vfio-pci, is no fault. */
export function addDriver(facts: Facts, driver: string | undefined): void {
  const isUnbound = driver === undefined;
  const message = isUnbound ? 'no driver is bound' : `bound to ${driver}`;
  facts.find('DriverUnbound', isUnbound, isUnbound ? 'NoDriver' : 'Bound', message);
}

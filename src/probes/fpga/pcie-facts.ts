import { basename } from 'node:path';
import { doesPciFunctionAnswer, isAsleepState } from '../../host/pci/pcie.ts';
import { pcieErrorFindings, pcieFindings } from '../kit/pcie/health.ts';
import { PCIE_EVERY_MS, type PcieSample, pcieReadings, readPcie } from '../kit/pcie/pcie.ts';
import type { ReportBuilder } from './report-builder.ts';
import type { Survey } from './survey.ts';

/** Only a `readable` function allows reads of the driver's files. A read would wake an `asleep` function, and is invalid on a `gone` one. */
export type PciPresence = 'readable' | 'asleep' | 'gone';

/** Adds all PCIe facts of one physical function. Tells whether its driver's files may be read. */
export function addPcie(builder: ReportBuilder, { host: { sys }, memory }: Survey, address: string): PciPresence {
  const answers = doesPciFunctionAnswer(sys, address);
  const driver = sys.link(`bus/pci/devices/${address}/driver`);
  if (driver !== undefined) addDriver(builder, basename(driver));
  if (answers === false) {
    builder.findings.push(...pcieErrorFindings({ link: { isAsleep: false }, aer: { errors: [], totals: {} }, answers }));
    return 'gone';
  }
  const isAsleep = isAsleepState(sys.text(`bus/pci/devices/${address}/power_state`));
  const read = (): PcieSample => readPcie(sys, address);
  const key = `${address}/pcie`;
  const { link, aer } = isAsleep ? read() : memory.atMostEvery(key, () => PCIE_EVERY_MS, read);
  const sample = { link, aer, ...(answers !== undefined && { answers }), readMs: isAsleep ? undefined : memory.readMs(key) };
  builder.readings.push(...pcieReadings(sample));
  builder.findings.push(...pcieFindings(sample));
  return isAsleep ? 'asleep' : 'readable';
}

/** Adds the finding whether a driver is bound. A board that is bound to another driver on purpose, such as vfio-pci, has no fault. */
export function addDriver(builder: ReportBuilder, driver: string | undefined): void {
  const isUnbound = driver === undefined;
  const message = isUnbound ? 'no driver is bound' : `bound to ${driver}`;
  builder.find('DriverUnbound', isUnbound, isUnbound ? 'NoDriver' : 'Bound', message);
}

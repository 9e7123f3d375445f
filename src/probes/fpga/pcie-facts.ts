import { doesPciFunctionAnswer } from '../../host/pcie.ts';
import { PCIE_EVERY_MS, pcieErrorFindings, pcieFindings, pcieReadings, readPcie } from '../pcie.ts';
import type { Facts } from './facts.ts';
import type { Survey } from './survey.ts';

/** `readable`: go on with the files of the driver. They would wake an `asleep` function, and a `gone` one gives garbage. */
export type PciPresence = 'readable' | 'asleep' | 'gone';

/** Everything about the PCIe side of one physical function, and whether its driver's files may be read. */
export function addPcie(facts: Facts, { host: { sys }, memory }: Survey, address: string): PciPresence {
  const answers = doesPciFunctionAnswer(sys, address);
  if (answers === false) {
    facts.findings.push(...pcieErrorFindings({ link: { isAsleep: false }, aer: { errors: [], totals: {} }, answers }));
    return 'gone';
  }
  const { link, aer } = memory.atMostEvery(`${address}/pcie`, PCIE_EVERY_MS, () => readPcie(sys, address));
  const sample = { link, aer, ...(answers !== undefined && { answers }) };
  facts.readings.push(...pcieReadings(sample));
  facts.findings.push(...pcieFindings(sample));
  return link.isAsleep ? 'asleep' : 'readable';
}

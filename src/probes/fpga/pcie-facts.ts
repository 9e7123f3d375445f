import {
  type AerCounters,
  type AerSeverity,
  attainableGeneration,
  attainableWidth,
  doesPciFunctionAnswer,
  type PcieLink,
  readAer,
  readPcieLink,
} from '../../host/pcie.ts';
import { seconds } from '../../model/duration.ts';
import type { Facts } from './facts.ts';
import { metrics } from './metrics.ts';
import type { Survey } from './survey.ts';

/** PCIe errors that grow from harmless probing (driver scans, lspci) and say nothing of the link. */
const HARMLESS: ReadonlySet<string> = new Set(['UnsupReq', 'NonFatalErr']);

/** Link and AER are questions to the configuration space; what they tell changes seldom. */
const EVERY_MS = seconds(30);

/** `readable`: go on with the files of the driver. They would wake an `asleep` function, and a `gone` one gives garbage. */
export type PciPresence = 'readable' | 'asleep' | 'gone';

/** Everything about the PCIe side of one physical function, and whether its driver's files may be read. */
export function addPcie(facts: Facts, survey: Survey, address: string): PciPresence {
  const { sys } = survey.host;
  const answers = doesPciFunctionAnswer(sys, address);
  if (answers === false) {
    facts.find('PciFunctionGone', true, 'ConfigurationAllOnes', 'all 64 bytes of the configuration header are ones');
    return 'gone';
  }
  if (answers === true) facts.find('PciFunctionGone', false, 'Answers', 'the configuration header can be read');
  const { link, aer } = survey.memory.atMostEvery(`${address}/pcie`, EVERY_MS, () => ({
    link: readPcieLink(sys, address),
    aer: readAer(sys, address),
  }));
  addLink(facts, link);
  addAer(facts, aer);
  return link.isAsleep ? 'asleep' : 'readable';
}

function addLink(facts: Facts, link: PcieLink): void {
  const widest = attainableWidth(link);
  const fastest = attainableGeneration(link);
  facts.add(metrics.pcieWidth, link.width);
  facts.add(metrics.pcieWidthMax, widest);
  facts.add(metrics.pcieGeneration, link.generation);
  facts.add(metrics.pcieGenerationMax, fastest);
  if (link.width !== undefined && widest !== undefined) {
    const isNarrow = link.width < widest;
    const message = `PCIe link x${link.width}, x${widest} is possible`;
    facts.find('PcieLinkDegraded', isNarrow, isNarrow ? 'WidthBelowMaximum' : 'AtMaximum', message, { instance: 'width' });
  }
  if (link.generation !== undefined && fastest !== undefined) {
    const isSlow = link.generation < fastest;
    const message = `PCIe link of generation ${link.generation}, ${fastest} is possible`;
    facts.find('PcieLinkDegraded', isSlow, isSlow ? 'SpeedBelowMaximum' : 'AtMaximum', message, { instance: 'speed' });
  }
}

function addAer(facts: Facts, aer: AerCounters): void {
  for (const { severity, kind, count } of aer.errors) {
    facts.add(metrics.pcieErrors, count <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(count) : count, { severity, kind });
  }
  const { fatal } = aer.totals;
  if (fatal !== undefined) facts.count('AerFatal', `TOTAL_ERR_FATAL: ${fatal}`, fatal);
  addSum(facts, aer, 'nonfatal', 'AerNonfatal');
  addSum(facts, aer, 'correctable', 'AerCorrectable');
}

function addSum(facts: Facts, aer: AerCounters, severity: AerSeverity, type: 'AerNonfatal' | 'AerCorrectable'): void {
  const counts = aer.errors.filter((error) => error.severity === severity && !HARMLESS.has(error.kind)).map(({ count }) => count);
  if (counts.length === 0) return;
  const sum = counts.reduce((a, b) => a + b, 0n);
  facts.count(type, `${severity} PCIe errors: ${sum}`, sum);
}

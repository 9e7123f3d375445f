import type { Host } from '../../host/host.ts';
import type { DeviceProcess, DeviceReport, Problem } from '../../model/collection.ts';
import type { Device } from '../../model/device.ts';
import type { Finding } from '../../model/health.ts';
import type { Reading } from '../../model/metric.ts';
import type { Located } from './devices.ts';
import { childrenOf, type Element, textAt } from './document.ts';
import { gpuFindings } from './findings.ts';
import { instanceFindings } from './memory-findings.ts';
import type { NvmlSource } from './nvml/source.ts';
import { PcieMemory, type PcieTold } from './pcie-memory.ts';
import { processesOf } from './processes.ts';
import { readGpu, readMig, type Told } from './readings.ts';
import { WidthMemory } from './width-memory.ts';

/** Where a device stands. */
export interface Place {
  readonly index: number;
  readonly cudaVersion?: string;
  /** False in a round that asked for what changes quickly alone. */
  readonly isWhole: boolean;
}

/** What a report was made of. */
interface Made {
  readonly device: Device;
  readonly told: Told;
  readonly processes: readonly DeviceProcess[];
  readonly findings: readonly Finding[];
  readonly widths: readonly Finding[];
  readonly pcie: PcieTold | undefined;
  readonly report: DeviceReport;
}

/** Makes the reports of GPUs and instances, and makes again of each only what changed: whoever compares them need not look into the rest. */
export class Reporter {
  readonly #host: Host;
  readonly #nvml: Pick<NvmlSource, 'memoOf' | 'gpuOf'>;
  readonly #widths = new WidthMemory();
  readonly #pcie: PcieMemory;
  readonly #made = new WeakMap<Element, Made>();

  constructor(host: Host, nvml: Pick<NvmlSource, 'memoOf' | 'gpuOf'>) {
    this.#host = host;
    this.#nvml = nvml;
    this.#pcie = new PcieMemory(host);
  }

  /** `gpu`: the element of the whole GPU. What it could not read is added to the problems. */
  report({ device, element }: Located, gpu: Element, place: Place, problems: Problem[]): DeviceReport {
    const pcie = device.pciAddress === undefined ? undefined : this.#pcie.read(device.pciAddress);
    const parts = device.kind === 'gpu' ? this.#gpuParts(device, gpu, place, pcie) : this.#instanceParts(device, element, gpu, place);
    const { unknown, failed } = parts.told;
    if (unknown.length > 0) problems.push({ code: 'unknown-value', device: device.id, message: summaryOf(unknown) });
    if (failed.length > 0) problems.push({ code: 'value-unreadable', device: device.id, message: summaryOf(failed) });
    const known = this.#made.get(element);
    if (known !== undefined && isMadeOf(known, device, parts, pcie)) return known.report;
    const report = reportOf(device, parts, pcie, known);
    if (this.#nvml.memoOf(element) !== undefined) this.#made.set(element, { device, ...parts, pcie, report });
    return report;
  }

  #gpuParts(device: Device, gpu: Element, place: Place, pcie: PcieTold | undefined): Parts {
    const memo = this.#nvml.memoOf(gpu);
    const more = [this.#nvml.gpuOf(gpu)?.links ?? NO_READINGS, pcie?.readings ?? NO_READINGS];
    const list = (): readonly DeviceProcess[] => processesOf(gpu, this.#host.proc);
    const compare = (): readonly Finding[] => this.#widths.findings(device.id, gpu);
    if (memo === undefined) {
      const told = readGpu(gpu, place);
      return {
        told: { ...told, readings: [...told.readings, ...more.flat()] },
        processes: list(),
        findings: gpuFindings(gpu),
        widths: compare(),
      };
    }
    return {
      told: memo.told(() => readGpu(gpu, place), more),
      processes: memo.processes(list, place.isWhole),
      findings: memo.findings(() => gpuFindings(gpu)),
      widths: memo.comparisons(compare),
    };
  }

  #instanceParts({ attributes }: Device, element: Element, gpu: Element, place: Place): Parts {
    const memo = this.#nvml.memoOf(element);
    const tell = (): Told => readMig(element, { sharesMemory: sharesMemory(element, gpu) });
    const key = `${attributes?.gpuInstance}/${attributes?.computeInstance}`;
    const list = (): readonly DeviceProcess[] => processesOf(gpu, this.#host.proc, key);
    const judge = (): readonly Finding[] => [...concerningInstances(gpuFindings(gpu)), ...instanceFindings(element)];
    if (memo === undefined) return { told: tell(), processes: list(), findings: judge(), widths: NO_FINDINGS };
    return {
      told: memo.told(tell, NO_LISTS),
      processes: memo.processes(list, place.isWhole),
      findings: memo.findings(judge),
      widths: NO_FINDINGS,
    };
  }
}

type Parts = Pick<Made, 'told' | 'processes' | 'findings' | 'widths'>;

const NO_READINGS: readonly Reading[] = [];
const NO_LISTS: readonly (readonly Reading[])[] = [];
const NO_FINDINGS: readonly Finding[] = [];

function isMadeOf(known: Made, device: Device, parts: Parts, pcie: PcieTold | undefined): boolean {
  return known.device === device && known.told === parts.told && known.processes === parts.processes && isJudgedBy(known, parts, pcie);
}

const isJudgedBy = (known: Made, { findings, widths }: Parts, pcie: PcieTold | undefined): boolean =>
  known.findings === findings && known.widths === widths && known.pcie === pcie;

function reportOf(device: Device, parts: Parts, pcie: PcieTold | undefined, known: Made | undefined): DeviceReport {
  const { told, processes, findings, widths } = parts;
  const isJudged = known !== undefined && isJudgedBy(known, parts, pcie);
  const onBus = device.kind === 'gpu' ? (pcie?.findings ?? NO_FINDINGS) : concerningInstances(pcie?.findings ?? NO_FINDINGS);
  const report = {
    device,
    readings: told.readings,
    findings: isJudged ? known.report.findings : [...findings, ...onBus, ...widths],
  };
  return processes.length === 0 ? report : { ...report, processes };
}

/** What is wrong with a GPU as a whole is wrong with its instances; what concerns one memory or counter may not be. */
const CONCERNS_INSTANCES: ReadonlySet<string> = new Set(['GpuLost', 'RecoveryAction', 'FabricNotReady', 'PciFunctionGone']);
const concerningInstances = (findings: readonly Finding[]): readonly Finding[] =>
  findings.filter(({ type }) => CONCERNS_INSTANCES.has(type));

/** Compute instances of one GPU instance share its memory. */
function sharesMemory(instance: Element, gpu: Element): boolean {
  const own = textAt(instance, 'gpu_instance_id');
  return childrenOf(gpu, 'mig_devices/mig_device').filter((other) => textAt(other, 'gpu_instance_id') === own).length > 1;
}

/** A sick GPU gives an error in each of a hundred places: three of them tell what it is about. */
function summaryOf(unknown: readonly string[]): string {
  const shown = unknown.slice(0, 3).map((text) => text.slice(0, 120));
  return unknown.length > 3 ? `${shown.join(', ')} and ${unknown.length - 3} more` : shown.join(', ');
}

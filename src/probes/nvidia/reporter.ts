import type { Host } from '../../host/host.ts';
import type { DeviceProcess, DeviceReport, Problem } from '../../model/collection.ts';
import type { Device } from '../../model/device.ts';
import type { Finding } from '../../model/health.ts';
import type { Reading } from '../../model/metric.ts';
import { childrenOf, type Element, textAt } from './document.ts';
import { gpuFindings } from './findings.ts';
import { concerningInstances, madeOf, NO_FINDINGS, type Parts } from './made.ts';
import { instanceFindings } from './memory-findings.ts';
import type { ElementMemo, Remembered } from './nvml/memo.ts';
import { PcieMemory, type PcieTold } from './pcie-memory.ts';
import { processesOf } from './processes.ts';
import { readGpu, readMig, type Told } from './readings.ts';
import { WidthMemory } from './width-memory.ts';

/** Where a device stands, and when it was read. */
export interface Place {
  readonly index: number;
  readonly cudaVersion?: string;
  /** False in a round that asked for what changes quickly alone. */
  readonly isWhole: boolean;
  readonly nowMs: number;
}

/** Makes the reports of GPUs and instances, and makes again of each only what changed: whoever compares them need not look into the rest. */
export class Reporter {
  readonly #host: Host;
  readonly #widths = new WidthMemory();
  readonly #pcie: PcieMemory;

  constructor(host: Host) {
    this.#host = host;
    this.#pcie = new PcieMemory(host.sys);
  }

  /** `gpu`: the element of the whole GPU. What it could not read is added to the problems. */
  report({ device, element, memo }: Remembered, gpu: Element, place: Place, problems: Problem[]): DeviceReport {
    const pcie = device.pciAddress === undefined ? undefined : this.#pcie.read(device.pciAddress, place.nowMs);
    const parts =
      device.kind === 'gpu' ? this.#gpuParts(device, gpu, place, memo, pcie) : this.#instanceParts(device, element, gpu, place, memo);
    const { unknown, failed } = parts.told;
    if (unknown.length > 0) problems.push({ code: 'unknown-value', device: device.id, message: summaryOf(unknown) });
    if (failed.length > 0) problems.push({ code: 'value-unreadable', device: device.id, message: summaryOf(failed) });
    const made = madeOf(device, parts, pcie, memo?.made);
    if (memo !== undefined) memo.made = made;
    return made.report;
  }

  #gpuParts(device: Device, gpu: Element, place: Place, memo: ElementMemo | undefined, pcie: PcieTold | undefined): Parts {
    const onBus = pcie?.readings ?? NO_READINGS;
    const list = (): readonly DeviceProcess[] => processesOf(gpu, this.#host.proc);
    const compare = (): readonly Finding[] => this.#widths.findings(device.id, gpu);
    if (memo === undefined) {
      const told = readGpu(gpu, place);
      return {
        told: { ...told, readings: [...told.readings, ...onBus] },
        processes: list(),
        findings: gpuFindings(gpu),
        widths: compare(),
      };
    }
    return {
      told: memo.told(() => readGpu(gpu, place), onBus),
      processes: memo.processes(list, place.isWhole),
      findings: memo.findings(() => gpuFindings(gpu)),
      widths: memo.comparisons(compare),
    };
  }

  #instanceParts({ attributes }: Device, element: Element, gpu: Element, place: Place, memo: ElementMemo | undefined): Parts {
    const tell = (): Told => readMig(element, { sharesMemory: sharesMemory(element, gpu) });
    const list = (): readonly DeviceProcess[] =>
      processesOf(gpu, this.#host.proc, `${attributes?.gpuInstance}/${attributes?.computeInstance}`);
    const judge = (): readonly Finding[] => [...concerningInstances(gpuFindings(gpu)), ...instanceFindings(element)];
    if (memo === undefined) return { told: tell(), processes: list(), findings: judge(), widths: NO_FINDINGS };
    return {
      told: memo.told(tell, NO_READINGS),
      processes: memo.processes(list, place.isWhole),
      findings: memo.findings(judge),
      widths: NO_FINDINGS,
    };
  }
}

const NO_READINGS: readonly Reading[] = [];

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

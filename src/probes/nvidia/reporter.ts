import type { Host } from '../../host/host.ts';
import type { DeviceProcess, DeviceReport, Problem } from '../../model/collection.ts';
import type { Device } from '../../model/device.ts';
import type { Finding } from '../../model/health.ts';
import type { Reading } from '../../model/metric.ts';
import { childrenOf, type Element, textAt } from './document.ts';
import { gpuFindings } from './findings.ts';
import { concerningInstances, type Made, madeOf, type Parts } from './made.ts';
import { instanceFindings } from './memory-findings.ts';
import type { ElementMemo, Remembered } from './nvml/memo.ts';
import { PcieMemory, type PcieTold } from './pcie-memory.ts';
import { processesOf } from './processes.ts';
import { readGpu, readMig, type Told } from './readings.ts';

/** What one round over all GPUs has in common. */
export interface RoundFacts {
  readonly cudaVersion?: string;
  /** False in a round that asked for what changes quickly alone. */
  readonly isWhole: boolean;
  /** Monotonic. */
  readonly nowMs: number;
}

/** A `<gpu>` element and its place among the others. */
export interface WholeGpu {
  readonly element: Element;
  readonly index: number;
  /** Of a library that stays open. */
  readonly memo?: ElementMemo | undefined;
}

/** Makes the reports of GPUs and instances, and makes again of each only what changed: whoever compares them need not look into the rest. */
export class Reporter {
  readonly #host: Host;
  #pcie: PcieMemory | undefined;

  constructor(host: Host) {
    this.#host = host;
  }

  /** Adds the reports of a GPU and its instances, which are one function on the bus, and to the problems what could not be read. */
  report(located: readonly Remembered[], gpu: WholeGpu, round: RoundFacts, reports: DeviceReport[], problems: Problem[]): void {
    this.#pcie ??= new PcieMemory(this.#host.sys);
    const address = located[0]?.device.pciAddress;
    const pcie = address === undefined ? undefined : this.#pcie.read(address, round.nowMs);
    for (const remembered of located) {
      const { device, memo } = remembered;
      const made = memo?.standing(device, pcie, round.isWhole) ?? this.#make(remembered, gpu, round, pcie);
      const { unknown, failed } = made.parts.told;
      if (unknown.length > 0) problems.push({ code: 'unknown-value', device: device.id, message: summaryOf(unknown) });
      if (failed.length > 0) problems.push({ code: 'value-unreadable', device: device.id, message: summaryOf(failed) });
      reports.push(made.report);
    }
  }

  #make({ device, element, memo }: Remembered, gpu: WholeGpu, round: RoundFacts, pcie: PcieTold | undefined): Made {
    const parts =
      device.kind === 'gpu' ? this.#gpuParts(gpu, round, memo, pcie) : this.#instanceParts(device, element, gpu.element, round, memo);
    const made = madeOf(device, parts, pcie, memo?.made);
    return memo?.keepMade(made) ?? made;
  }

  #gpuParts(gpu: WholeGpu, round: RoundFacts, memo: ElementMemo | undefined, pcie: PcieTold | undefined): Parts {
    const { element } = gpu;
    const onBus = pcie?.readings ?? NO_READINGS;
    if (memo === undefined) {
      const told = readGpu(element, { ...round, index: gpu.index });
      return {
        told: { ...told, readings: [...told.readings, ...onBus] },
        processes: processesOf(element, this.#host.proc),
        findings: gpuFindings(element),
      };
    }
    return {
      told: memo.told(onBus) ?? memo.keepTold(readGpu(element, { ...round, index: gpu.index }), onBus),
      processes: memo.processes(round.isWhole) ?? memo.keepProcesses(processesOf(element, this.#host.proc)),
      findings: memo.findings() ?? memo.keepFindings(gpuFindings(element)),
    };
  }

  #instanceParts(device: Device, element: Element, gpu: Element, { isWhole }: RoundFacts, memo: ElementMemo | undefined): Parts {
    if (memo === undefined) {
      const told = readInstance(element, gpu);
      return {
        told,
        processes: this.#instanceProcesses(device, gpu),
        findings: judgeInstance(element, gpu),
      };
    }
    return {
      told: memo.told(NO_READINGS) ?? memo.keepTold(readInstance(element, gpu), NO_READINGS),
      processes: memo.processes(isWhole) ?? memo.keepProcesses(this.#instanceProcesses(device, gpu)),
      findings: memo.findings() ?? memo.keepFindings(judgeInstance(element, gpu)),
    };
  }

  #instanceProcesses({ attributes }: Device, gpu: Element): readonly DeviceProcess[] {
    return processesOf(gpu, this.#host.proc, `${attributes?.gpuInstance}/${attributes?.computeInstance}`);
  }
}

const readInstance = (element: Element, gpu: Element): Told => readMig(element, { sharesMemory: sharesMemory(element, gpu) });
const judgeInstance = (element: Element, gpu: Element): readonly Finding[] => [
  ...concerningInstances(gpuFindings(gpu)),
  ...instanceFindings(element),
];

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

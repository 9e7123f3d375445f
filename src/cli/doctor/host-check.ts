import { systemClock } from '../../host/clock.ts';
import { readHostFacts } from '../../host/facts.ts';
import { Tree } from '../../host/fs/tree.ts';
import { pathOptions } from '../../host/options.ts';
import type { HostFacts } from '../../model/host-facts.ts';
import { type CheckContext, type CheckResult, ok } from './check.ts';

/** Describes the machine. It is never a finding, but readers of a report need it first. */
export async function checkHost({ configuration, ask }: CheckContext): Promise<CheckResult[]> {
  const told = (await ask('/api/v1/status')).answer?.body as { readonly host?: HostFacts } | null | undefined;
  const sys = new Tree(configuration.section('path', pathOptions).sysfs);
  const { manufacturer, model, cpuModel, cpus, memoryBytes, operatingSystem, kernel, numaNodes } =
    told?.host ?? (await readHostFacts(sys, systemClock));
  const parts = [
    [manufacturer, model].filter(Boolean).join(' '),
    cpuModel === undefined ? '' : `${cpus ?? '?'} × ${cpuModel}`,
    memoryBytes === undefined ? '' : `${Math.round(memoryBytes / 2 ** 30)} GiB`,
    numaNodes === undefined ? '' : `${numaNodes} NUMA ${numaNodes === 1 ? 'node' : 'nodes'}`,
    operatingSystem ?? '',
    kernel === undefined ? '' : `kernel ${kernel}`,
  ];
  return [ok('host', parts.filter((part) => part !== '').join(', '))];
}

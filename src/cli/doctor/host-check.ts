import { askHostFacts } from '../../agent/host-facts.ts';
import { pathOptions } from '../../host/options.ts';
import { type CheckContext, type CheckResult, ok, skipped } from './check.ts';

/** What the machine is: nothing to judge, but the first thing that a reader of a report asks. */
export async function checkHost({ configuration }: CheckContext): Promise<CheckResult[]> {
  const facts = await askHostFacts(configuration.section('path', pathOptions).sysfs);
  if (facts === undefined) return [skipped('host', 'the machine could not be asked what it is')];
  const { manufacturer, model, cpuModel, cpus, memoryBytes, operatingSystem, kernel, numaNodes } = facts;
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

import { UserError } from '../../errors.ts';
import { durationText } from '../../model/duration.ts';
import type { ListedFault } from '../../sim/faults.ts';
import type { CommandContext, Ending } from '../context.ts';
import { textTable } from '../text-table.ts';
import type { ReportedFault } from './control.ts';
import { askDemo, type RunningDemo } from './running-demos.ts';

/** Begins a fault on a running demo; without a name, lists the faults. */
export async function runDemoFault(context: CommandContext): Promise<Ending> {
  const { options, output } = context;
  const { name, device } = options;
  const isJson = options.output === 'json';
  const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;
  if (typeof name !== 'string') {
    const { demo, answer } = await askDemo(context, { do: 'list' }, pidOf(options));
    if (!('faults' in answer)) throw unexpected(demo);
    await output.write(isJson ? json({ demo: { pid: demo.pid, address: demo.address }, ...answer }) : listText(demo, answer));
    return { status: 0 };
  }
  const request = { do: 'begin', name, ...(typeof device === 'string' && { device }) } as const;
  const { demo, answer } = await askDemo(context, request, pidOf(options));
  if (!('began' in answer)) throw unexpected(demo);
  await output.write(isJson ? json(answer.began) : beganText(demo, answer.began));
  return { status: 0 };
}

/** Ends faults of a running demo. */
export async function runDemoFaultClear(context: CommandContext): Promise<Ending> {
  const { options, output } = context;
  const { what } = options;
  const { demo, answer } = await askDemo(context, { do: 'clear', ...(typeof what === 'string' && { what }) }, pidOf(options));
  if (!('ended' in answer)) throw unexpected(demo);
  const lines = answer.ended.map((fault) => `${fault.name} on ${placeOf(fault)} ended.\n`);
  await output.write(lines.length === 0 ? `No ${what === undefined ? '' : 'such '}fault was running.\n` : lines.join(''));
  return { status: 0 };
}

const unexpected = ({ pid }: RunningDemo): UserError =>
  new UserError('demo-silent', { pid: String(pid), problem: 'its answer is not the one of this version' });

function pidOf({ demo }: CommandContext['options']): number | undefined {
  if (demo === undefined) return undefined;
  if (!/^[1-9]\d{0,9}$/.test(String(demo))) throw new UserError('flag-invalid', { flag: '--demo', problem: 'must be a process id' });
  return Number(demo);
}

const placeOf = ({ family, device }: ReportedFault): string => (device === undefined ? `all devices of ${family}` : `${family}/${device}`);

function beganText({ address }: RunningDemo, fault: ReportedFault): string {
  const page = fault.device === undefined || !address.startsWith('http') ? '' : `${address}/devices/${fault.family}/${fault.device}`;
  const began = fault.seconds === 0 ? 'began' : `already runs for ${durationText(fault.seconds * 1_000)}`;
  return `${fault.name} on ${placeOf(fault)} ${began}.${page === '' ? '' : ` ${page}`}\n`;
}

function listText(
  { pid, address }: RunningDemo,
  { faults, running }: { readonly faults: readonly ListedFault[]; readonly running: readonly ReportedFault[] },
): string {
  const devices = [...new Set(faults.flatMap(({ family, devices }) => devices.map((id) => `${family}/${id}`)))];
  const named = (key: string): string =>
    faults.flatMap((fault) => (fault.devices.some((id) => `${fault.family}/${id}` === key) ? [fault.name] : [])).join(' ');
  const ofFamilies = faults.filter((fault) => fault.devices.length === 0 && fault.isOfWholeFamily);
  const parts = [
    textTable([['FAULT', 'FAMILY', 'WHAT HAPPENS'], ...faults.map(({ name, family, about }) => [name, family, about])]),
    textTable([
      ['DEVICE', 'ITS FAULTS'],
      ...devices.map((key) => [key, named(key)]),
      ...ofFamilies.map(({ family, name }) => [`all devices of ${family}`, name]),
    ]),
    running.length === 0
      ? 'No fault runs.\n'
      : textTable([
          ['RUNS NOW', 'DEVICE', 'FOR'],
          ...running.map((fault) => [fault.name, placeOf(fault), durationText(fault.seconds * 1_000)]),
        ]),
  ];
  return `Faults of the demo ${pid} at ${address}\n\n${parts.join('\n')}`;
}

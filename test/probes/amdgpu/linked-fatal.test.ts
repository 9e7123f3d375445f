import { afterEach, describe, expect, it } from 'vitest';
import { family } from '../../../src/probes/amdgpu/index.ts';
import { eventState } from '../../../src/sim/families/amdgpu/simulate.ts';
import { hardwareOf } from '../../support/hardware.ts';
import { buildMachine, type MachineFile } from '../../support/machine.ts';
import { probeOptions } from '../../support/probe-options.ts';
import { type ProbedMachine, probedMachine } from '../../support/probed-machine.ts';
import { reportOf } from './harness.ts';

const addressOf = (n: number): string => `0020:1${n}:00.0`;
const CARDS = [0, 1, 2];
const line = (seq: number, card: number): string =>
  `4,${seq},${seq}000000,-;amdgpu ${addressOf(card)}: {1}uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected!\n SUBSYSTEM=pci\n DEVICE=+pci:${addressOf(card)}\n`;

let machine: ProbedMachine;
afterEach(() => machine.end());

/** The first two cards are linked. */
function build(log: string): void {
  const { root } = buildMachine({ about: '', ...hardwareOf(family, { amdgpu: CARDS.length }), options: {} } as MachineFile);
  machine = probedMachine(root, (host) => family.createProbe(host, probeOptions(family, {})), { kmsg: `${root}/dev/kmsg` });
  machine.write('dev/kmsg', log);
}

/** Level of RasFatal, and the source of the recorded error, of each card when all of them count so many. */
function told(count: number): readonly unknown[] {
  for (const card of CARDS)
    machine.write(`sys/devices/pci0020:00/0020:00:0${card + 1}.0/${addressOf(card)}/ras/event_state`, `${eventState(count)}\n`);
  machine.forward(10_000);
  const collection = machine.collect();
  return CARDS.map((card) => {
    const { findings } = reportOf(collection, addressOf(card));
    const recorded = findings.find(({ type }) => type === 'FatalErrorRecorded');
    return [findings.find(({ type }) => type === 'RasFatal')?.level, recorded?.causedBy, recorded?.remedy];
  });
}

describe('cards that are linked count their fatal errors together', () => {
  it('the line of the log says whose it was, the linked card is its victim, and a card without links counts alone', () => {
    build('');
    expect(told(0)).toEqual(CARDS.map(() => [-0, undefined, undefined]));
    machine.write('dev/kmsg', line(1, 1));
    expect(told(1)).toEqual([
      [-0, addressOf(1), 'restart-workload'],
      [-1, undefined, undefined],
      [-1, undefined, undefined],
    ]);
  });

  it('without a line for each error, every card may have had it', () => {
    build(line(1, 1));
    expect(told(2)).toEqual(CARDS.map(() => [-2, undefined, undefined]));
  });
});

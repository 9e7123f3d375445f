import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { Collection } from '../../../src/model/collection.ts';
import type { Machine } from '../../support/machine.ts';
import { breakFile, holding, type ProbedMachine, probeMachine, reportOf, seriesValue, write } from './harness.ts';

const CARD = '0000:01:00.0';
const PORT = `${CARD}-port0`;
const FUNCTION = `sys/devices/pci0000:00/0000:00:01.0/${CARD}`;
const REGION = `${FUNCTION}/fpga_region/region0`;

const open: ProbedMachine[] = [];
afterEach(() => {
  for (const { machine } of open.splice(0)) machine.remove();
});

function probe(name: string, change?: (machine: Machine) => void): ProbedMachine {
  const probed = probeMachine(name, change);
  open.push(probed);
  return probed;
}

/** A machine whose board answers until `die`; after that, every register reads as all ones. */
function dyingBoard(): ProbedMachine & { die(): void } {
  const alive = probe('emergency-power-down', (machine) => write(machine, `${REGION}/dfl-port.0/power_state`, '0x0\n'));
  const dead = probe('identity-all-ones');
  const die = (): void => cpSync(join(dead.machine.root, REGION), join(alive.machine.root, REGION), { recursive: true });
  return { ...alive, die };
}

describe('a board whose registers read as ones', () => {
  it('reports no value of fields that drivers extract from them', () => {
    const card = reportOf(probe('identity-all-ones').collect(), CARD);
    expect(card.readings.filter(({ metric }) => /temperature|power|throttled|memory|error|_state/.test(metric))).toEqual([]);
    expect(JSON.stringify(card.readings, (_, value) => (typeof value === 'bigint' ? `${value}` : value))).not.toMatch(/f{16}/);
    expect(holding(card)).toEqual({ 'IdentityLost/bitstream_id': 'AllOnes', 'IdentityLost/compat_id': 'AllOnes' });
    const unknown = card.findings.filter(({ status, reason }) => status === 'unknown' && reason !== 'LogUnread').map(({ type }) => type);
    expect(unknown).toEqual(['FatalError', 'NonfatalError', 'FmeError', 'PcieInterfaceError', 'ErrorInjected']);
  });

  it('gives no port a number that it never had', () => {
    const { reports, problems } = probe('identity-all-ones').collect();
    expect(reports.map(({ device }) => device.id)).toEqual([CARD]);
    expect(problems.map(({ code }) => code)).toEqual(['port-number-unknown']);
  });

  it('keeps its known port, which counts no new accelerator', () => {
    const board = dyingBoard();
    board.collect();
    board.die();
    const port = reportOf(board.collect(), PORT);
    expect(holding(port)).toEqual({ 'IdentityLost/afu_id': 'AllOnes', CardFault: 'CardHasFatalCondition' });
    expect(port.readings.filter(({ metric }) => /throttle|power/.test(metric))).toEqual([]);
    expect(port.findings.filter(({ status }) => status === 'unknown').map(({ type }) => type)).toContain('PowerDown');
    expect(seriesValue(port, 'device_fpga_reconfigurations_total')).toBe(0);
  });
});

describe('a board that had a fatal fault', () => {
  const errorToExit = (collection: Collection): unknown =>
    reportOf(collection, PORT).findings.find(({ type }) => type === 'CardFault')?.status;
  const injection = (collection: Collection): unknown =>
    reportOf(collection, CARD).findings.find(({ type }) => type === 'ErrorInjected')?.status;

  it('keeps its ports unhealthy when it falls asleep, because no read shows that it recovered', () => {
    const { machine, collect } = probe('emergency-power-down');
    expect(errorToExit(collect())).toBe(true);
    write(machine, `${FUNCTION}/power_state`, 'D3hot\n');
    expect(errorToExit(collect())).toBe('unknown');
  });

  it('keeps its ports unhealthy while its registers cannot be read', () => {
    const { machine, collect } = probe('emergency-power-down');
    expect(errorToExit(collect())).toBe(true);
    for (const register of ['catfatal_errors', 'pcie0_errors']) breakFile(machine, `${REGION}/dfl-fme.0/errors/${register}`);
    expect(errorToExit(collect())).toBe('unknown');
  });

  it('keeps ErrorInjected while its registers cannot be read', () => {
    const { machine, collect } = probe('emergency-power-down');
    for (const register of ['catfatal_errors', 'inject_errors']) breakFile(machine, `${REGION}/dfl-fme.0/errors/${register}`);
    expect(injection(collect())).toBe(true);
    write(machine, `${REGION}/dfl-fme.0/errors/nonfatal_errors`, '0x0\n');
    expect(injection(collect())).toBe('unknown');
  });
});

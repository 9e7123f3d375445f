import { describe, expect, it } from 'vitest';
import { RECOVERY_ACTIONS } from '../../../src/probes/nvidia/sample.ts';
import type { XidLine } from '../../../src/probes/nvidia/xid-line.ts';
import { judgeXid, XID_TABLE, xidRow } from '../../../src/probes/nvidia/xid-table.ts';
import { policyOn, renderXidComparison, XID_DISPUTED, XID_POLICIES } from './xid-comparison.ts';

const line = (xid: number, more: Partial<XidLine> = {}): XidLine => ({ kind: 'xid', pciAddress: '0000:3b:00.0', xid, text: '', ...more });
const severities = (xids: readonly number[]): readonly string[] => xids.map((xid) => `${xid} ${judgeXid(line(xid)).severity}`);
const all = (xids: readonly number[], severity: string): readonly string[] => xids.map((xid) => `${xid} ${severity}`);

describe('the table of Xids', () => {
  it('has every number from 1 to 176, each once', () => {
    const numbers = XID_TABLE.flatMap(({ xids }) => xids).sort((a, b) => a - b);
    expect(numbers).toEqual(Array.from({ length: 176 }, (_, index) => index + 1));
  });

  it('has every number that another project lists', () => {
    const listed = XID_POLICIES.flatMap(({ lists }) => Object.values(lists).flat());
    expect([...listed, ...XID_DISPUTED].filter((xid) => xidRow(xid) === undefined)).toEqual([]);
  });

  it('has no fatal error of an application', () => {
    const application = [8, 13, 31, 43, 45, 68, 69];
    expect(severities(application)).toEqual(all(application, 'info'));
    expect(XID_TABLE.filter((row) => row.class === 'Application' && row.severity === 'fatal')).toEqual([]);
  });

  it('is fatal for errors that only a reset, a reboot or a repair can end', () => {
    const out = [46, 48, 54, 62, 64, 74, 79, 95, 109, 110, 119, 120, 123, 136, 140, 143, 151, 155, 156, 158, 167, 169, 171, 172, 173];
    expect(severities(out)).toEqual(all(out, 'fatal'));
    const fatal = XID_TABLE.filter(({ severity }) => severity === 'fatal').flatMap(({ xids }) => xids);
    expect(fatal.sort((a, b) => a - b)).toEqual([...out, 144, 145, 146, 147, 148, 149, 150, 154].sort((a, b) => a - b));
  });

  it('is degraded for a contained error or a remapped row, and names the pending action', () => {
    expect(judgeXid(line(94))).toMatchObject({ severity: 'degraded', remedy: 'restart-workload', lasts: 'reset' });
    expect(judgeXid(line(94)).meaning).toContain('reset pending');
    expect(judgeXid(line(94, { resetRequired: true }))).toMatchObject({ severity: 'degraded', remedy: 'reset' });
    expect(judgeXid(line(63))).toMatchObject({ severity: 'degraded', remedy: 'reset', lasts: 'reset' });
    expect(judgeXid(line(64))).toMatchObject({ severity: 'fatal', remedy: 'replace', lasts: 'boot' });
  });

  it('has no lasting error with severity `info`, and no fatal error that ends by itself', () => {
    expect(XID_TABLE.filter(({ lasts, severity }) => severity === 'info' && lasts !== 'quiet')).toEqual([]);
    expect(XID_TABLE.filter(({ lasts, severity }) => severity === 'fatal' && lasts === 'quiet')).toEqual([]);
    expect(XID_TABLE.filter(({ severity, remedy }) => severity === 'fatal' && remedy === 'none')).toEqual([]);
  });

  it.each([144, 145, 146, 147, 148, 149, 150])('judges %i by the severity of the line', (xid) => {
    const fatal = { nvlink: { unit: 'NETIR', isFatal: true } };
    expect(judgeXid(line(xid, fatal))).toMatchObject({ severity: 'fatal', remedy: 'reset', class: 'Link' });
    expect(judgeXid(line(xid, { nvlink: { unit: 'NETIR', isFatal: false } }))).toMatchObject({
      severity: 'degraded',
      lasts: 'quiet',
    });
    expect(judgeXid(line(xid))).toMatchObject({ severity: 'degraded' });
  });

  it.each([
    [1, 'reset'],
    [2, 'reboot'],
    [3, 'restart-workload'],
    [4, 'reset'],
    [5, 'inspect'],
    [77, 'inspect'],
    [undefined, 'inspect'],
  ])('takes the remedy of 154 with action %s from the driver', (action, remedy) => {
    const recoveryAction = RECOVERY_ACTIONS[action ?? -1];
    const judgement = judgeXid(line(154, recoveryAction && { recoveryAction }));
    expect(judgement).toMatchObject({ class: 'RecoveryAction', severity: 'fatal', remedy, isWholeGpu: true });
  });

  it('judges an unknown number as a passing error', () => {
    expect(xidRow(9_999)).toBeUndefined();
    expect(judgeXid(line(9_999))).toMatchObject({ class: 'UnknownXid', severity: 'degraded', lasts: 'quiet' });
  });
});

describe('the comparison with other projects', () => {
  it('shows the action of each project', () => {
    const of = (project: string, xid: number): string => {
      const policy = XID_POLICIES.find((each) => each.project === project);
      return policy === undefined ? 'no such project' : policyOn(policy, xid);
    };
    expect(of('k8s-device-plugin', 109)).toBe('ignored');
    expect(of('k8s-device-plugin', 63)).toBe('out for good');
    expect(of('GKE', 48)).toBe('out');
    expect(of('GKE', 79)).toBe('node condition');
    expect(of('GKE', 31)).toBe('–');
    expect(of('DCGM', 57)).toBe('warn');
    expect(of('GCM', 94)).toBe('fail');
  });

  it('is a table with a cell for each project and a line for each number', () => {
    const [head = '', , ...rest] = renderXidComparison().split('\n');
    const lines = rest.filter((text) => text.startsWith('|'));
    const width = head.split('|').length;
    expect(lines.filter((text) => text.split('|').length !== width)).toEqual([]);
    expect(head).toContain('k8s-device-plugin');
    const numbers = lines.flatMap((text) => numbersOf(text.split('|')[1] ?? ''));
    expect(numbers.sort((a, b) => a - b)).toEqual(Array.from({ length: 176 }, (_, index) => index + 1));
    for (const xid of XID_DISPUTED)
      expect(
        lines.some((text) => text.startsWith(`| **${xid}** |`)),
        String(xid),
      ).toBe(true);
  });
});

function numbersOf(cell: string): readonly number[] {
  return cell
    .replaceAll('*', '')
    .split(',')
    .flatMap((part) => {
      const [first = 0, last = first] = part.split('–').map(Number);
      return Array.from({ length: last - first + 1 }, (_, index) => first + index);
    });
}

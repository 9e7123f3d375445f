import { describe, expect, it } from 'vitest';
import type { Tree } from '../../../src/host/fs/tree.ts';
import { ReportBuilder } from '../../../src/probes/fpga/board.ts';
import { addAccelerator, addPortErrors, reportPowerState } from '../../../src/probes/fpga/dfl.ts';
import { addManager, MANAGER_STATES, readManager } from '../../../src/probes/fpga/manager.ts';
import { addEngineErrors } from '../../../src/probes/fpga/registers.ts';
import { addAbsentSensors, nameSensors } from '../../../src/probes/fpga/sensors.ts';
import { DeviceFiles } from '../../../src/probes/kit/device-files.ts';

type Told = readonly [type: string, status: unknown, reason: string, severity?: string];

function told(tell: (builder: ReportBuilder) => void): readonly Told[] {
  const builder = new ReportBuilder();
  tell(builder);
  return builder.findings.map(({ type, status, reason, severity }) =>
    severity === undefined ? [type, status, reason] : [type, status, reason, severity],
  );
}

describe('an accelerator id', () => {
  it('that is busy means a port in reset', () => {
    expect(told((builder) => addAccelerator(builder, { isUnknown: true, error: 'EBUSY' }))).toEqual([
      ['Reconfiguring', true, 'PortInReset'],
    ]);
  });
  it('that can be read ends the reset', () => {
    expect(told((builder) => addAccelerator(builder, { isUnknown: false, value: 'd8424dc4a4a3c413f89e433683f9040b' }))).toEqual([
      ['IdentityLost', false, 'Readable'],
      ['Reconfiguring', false, 'Idle'],
    ]);
  });
  it('that does not exist gives no finding', () => {
    expect(told((builder) => addAccelerator(builder, { isUnknown: false, error: 'ENOENT' }))).toEqual([]);
  });
});

describe('the power state', () => {
  it.each([
    [0n, [false, false]],
    [1n, [true, false]],
    [2n, [true, false]],
    [6n, [false, true]],
  ])('%s is throttled, down: %s', (value, [throttled, down]) => {
    expect(told((builder) => reportPowerState(builder, { value, isUnknown: false })).map(([, status]) => status)).toEqual([
      throttled,
      down,
    ]);
  });
  it('outside the table is no data', () =>
    expect(told((builder) => reportPowerState(builder, { value: 5n, isUnknown: false }))).toEqual([]));
  it('that cannot be read makes a shutdown unknown', () => {
    expect(told((builder) => reportPowerState(builder, { isUnknown: true, error: 'EIO' }))).toEqual([
      ['PowerDown', 'unknown', 'EmergencyShutdown'],
    ]);
  });
});

describe('a manager', () => {
  const conditions = (state: string, status: readonly string[] = []): readonly string[] =>
    told((builder) => addManager(builder, { state, status }))
      .filter(([, holds]) => holds === true)
      .map(([type, , reason]) => `${type} ${reason}`);

  it.each([
    ['unknown', []],
    ['power off', ['ManagerDown PoweredOff']],
    ['power up', []],
    ['reset', ['ManagerDown InReset']],
    ['firmware request', ['Reconfiguring Programming']],
    ['firmware request error', ['ProgramFailed StateError']],
    ['parse header', ['Reconfiguring Programming']],
    ['parse header error', ['ProgramFailed StateError']],
    ['write init', ['Reconfiguring Programming']],
    ['write init error', ['ProgramFailed StateError']],
    ['write', ['Reconfiguring Programming']],
    ['write error', ['ProgramFailed StateError']],
    ['write complete', ['Reconfiguring Programming']],
    ['write complete error', ['ProgramFailed StateError']],
    ['operating', []],
  ])('that is in state "%s" has %j', (state, expected) => expect(conditions(state)).toEqual(expected));

  it('has exactly those states', () => expect(MANAGER_STATES).toHaveLength(15));

  it.each([
    [['reconfig operation error'], 'ProgramFailed StatusReported'],
    [['reconfig incompatible image'], 'ProgramFailed StatusReported'],
    [['reconfig IP protocol error'], 'ProgramFailed StatusReported'],
    [['reconfig CRC error'], 'ProgramFailed HardwareRefused'],
    [['reconfig operation error', 'reconfig fifo overflow error'], 'ProgramFailed HardwareRefused'],
  ])('whose status says %j has %s', (status, expected) => expect(conditions('unknown', status)).toEqual([expected]));

  it.each([
    ['operating', 'EIO', 'unknown'],
    ['operating', 'EACCES', 'unknown'],
    ['write error', 'EIO', true],
    ['operating', 'ENOENT', false],
  ] as const)('in state "%s" whose status gives %s has failed: %s', (state, error, expected) => {
    const read = (path: string) => (path.endsWith('/status') ? { error } : { text: path.endsWith('/state') ? `${state}\n` : 'manager\n' });
    const sample = readManager(new DeviceFiles({ read } as unknown as Tree, 'manager'));
    const found = told((builder) => addManager(builder, sample)).find(([type]) => type === 'ProgramFailed');
    expect(found?.[1]).toBe(expected);
  });
});

describe('error registers', () => {
  const engine = (register: string, mask: bigint | 'unknown', revision?: number): readonly Told[] =>
    told((builder) => addEngineErrors(builder, new Map([[register, mask]]) as never, revision)).filter(
      ([type]) => type !== 'ErrorInjected',
    );

  it.each([
    ['catfatal_errors', 0n, ['FatalError', false, 'Clear']],
    ['catfatal_errors', 0x40n, ['FatalError', true, 'RegisterSet']],
    ['catfatal_errors', 0x400n, ['FatalError', true, 'ThermalRunaway']],
    ['catfatal_errors', 0x900n, ['FatalError', false, 'Clear']],
    ['catfatal_errors', 'unknown', ['FatalError', 'unknown', 'RegisterSet']],
    ['nonfatal_errors', 0x4n, ['NonfatalError', true, 'RegisterSet']],
    ['nonfatal_errors', 0x40n, ['NonfatalError', false, 'Clear']],
    ['fme_errors', 0x1n, ['FmeError', true, 'RegisterSet']],
    ['pcie0_errors', 0x200n, ['PcieInterfaceError', true, 'RegisterSet']],
    ['pcie1_errors', 0x80n, ['PcieInterfaceError', true, 'CompletionTimeout', 'fatal']],
  ] as const)('%s of %s is %j', (register, mask, expected) => expect(engine(register, mask)).toEqual([expected]));

  it('of revision 1 have no thermal runaway', () =>
    expect(engine('catfatal_errors', 0x400n, 1)).toEqual([['FatalError', true, 'RegisterSet']]));

  it('report injected errors', () => {
    const injected = (mask: bigint): unknown => told((builder) => addEngineErrors(builder, new Map([['inject_errors', mask]]), 1))[0]?.[1];
    expect([injected(0n), injected(4n)]).toEqual([false, true]);
  });

  it.each([
    [1n << 7n, 1, true, 'fatal'],
    [1n << 14n, 1, true, 'fatal'],
    [1n << 7n, 1, false, undefined],
    [1n << 7n, 0, true, undefined],
    [1n << 7n, undefined, true, 'fatal'],
    [1n << 2n, 1, true, undefined],
  ])('of a port, mask %s, revision %s, strict %s: severity %s', (mask, revision, isStrict, severity) => {
    expect(told((builder) => addPortErrors(builder, mask, revision, isStrict))[0]?.[3]).toBe(severity);
  });
});

describe('a sensor without data', () => {
  it('is no fault, and has no reading', () => {
    const channel = {
      kind: 'temp',
      number: 3,
      name: 'temp3',
      label: 'qsfp0_temperature',
      isAverage: false,
      attribute: () => undefined,
    } as const;
    const sensors = nameSensors([{ channel, directory: '', error: 'ENODATA' }]);
    expect(told((builder) => addAbsentSensors(builder, sensors))).toEqual([['SensorAbsent', true, 'NoData']]);
  });
});

import { describe, expect, it } from 'vitest';
import { boardOfShell, parseBootFlags, parseClocks, parseKdsStat, parseLoaded, parseMemStat } from '../../../src/probes/fpga/alveo-user.ts';
import { parseStatus } from '../../../src/probes/fpga/manager.ts';
import { bitName, bitNames, isAllOnes, parseFlag, parseId, parseRegister, setBits } from '../../../src/probes/fpga/registers.ts';

describe('registers', () => {
  it.each([
    ['0x0\n', 0n],
    ['0\n', 0n],
    ['0x501020222df1b7a', 0x501020222df1b7an],
    ['0xFFFFFFFFFFFFFFFF', 0xffff_ffff_ffff_ffffn],
    ['6', 6n],
    [`0x${'0'.repeat(32)}`, 0n],
    ['', undefined],
    ['0x', undefined],
    ['-1', undefined],
    ['garbage', undefined],
  ])('%j gives %s', (text, expected) => expect(parseRegister(text)).toBe(expected));

  it.each([
    ['0', false],
    ['1', true],
    ['0x1', true],
    ['2', undefined],
    ['', undefined],
  ])('as a flag %j gives %s', (text, expected) => expect(parseFlag(text)).toBe(expected));

  it('recognizes the values of a board that does not answer', () => {
    expect(isAllOnes(0xffff_ffff_ffff_ffffn)).toBe(true);
    expect(isAllOnes(0xffff_ffffn)).toBe(false);
    expect(isAllOnes('f'.repeat(32))).toBe(true);
    expect(isAllOnes('0'.repeat(32))).toBe(false);
  });

  it('lists set bits, the highest of 64 included', () => expect(setBits(0x8000_0000_0000_0401n)).toEqual([0, 10, 63]));
});

describe('ids', () => {
  it.each([
    ['98B4D5BC98BA5F4B98D9A2841CCF11B0\n', '98b4d5bc98ba5f4b98d9a2841ccf11b0'],
    ['d2d4f4a5-44a9-4d2f-9a8d-3a8d0b9b1f10', 'd2d4f4a544a94d2f9a8d3a8d0b9b1f10'],
    ['98b4', undefined],
    ['hash not programmed', undefined],
  ])('id %j gives %s', (text, expected) => expect(parseId(text)).toBe(expected));
});

describe('names of error bits', () => {
  it.each([
    ['fme_errors', 0, 0, 'fabric'],
    ['fme_errors', 1, 0, 'pr_fifo_parity'],
    ['fme_errors', undefined, 0, 'bit0'],
    ['fme_errors', undefined, 5, 'pf_vf_mismatch'],
    ['pcie0_errors', undefined, 7, 'completion_timeout'],
    ['pcie0_errors', 0, 12, 'bit12'],
    ['pcie0_errors', 1, 12, 'receive_fifo_overflow'],
    ['nonfatal_errors', 0, 11, 'power_ap2'],
    ['nonfatal_errors', 1, 11, 'bit11'],
    ['catfatal_errors', 0, 10, 'thermal_runaway'],
    ['catfatal_errors', undefined, 9, 'crc'],
    ['inject_errors', undefined, 2, 'nonfatal'],
    ['port_errors', 1, 7, 'mmio_timeout'],
    ['port_errors', 0, 7, 'bit7'],
    ['port_errors', 0, 51, 'ap6_event'],
    ['port_errors', undefined, 14, 'bit14'],
    ['port_errors', 7, 14, 'bit14'],
  ] as const)('%s of revision %s, bit %i is %s', (register, revision, bit, name) => expect(bitName(register, revision, bit)).toBe(name));

  it('come lowest first', () =>
    expect(bitNames('catfatal_errors', 0, 0xd00n)).toEqual(['injected_fatal', 'thermal_runaway', 'injected_catastrophic']));
});

describe('status of a manager', () => {
  it('is one error a line, and none when empty', () => {
    expect(parseStatus('reconfig CRC error\nreconfig fifo overflow error\n')).toEqual([
      'reconfig CRC error',
      'reconfig fifo overflow error',
    ]);
    expect(parseStatus('\n')).toEqual([]);
  });
});

describe('kdsstat', () => {
  it('gives use and clients, each pid once', () => {
    const text =
      'xclbin:\t\t\td2d4f4a5-44a9-4d2f-9a8d-3a8d0b9b1f10\noutstanding execs:\t3\ntotal execs:\t\t9007199254740993\ncontexts:\t\t3\nclient pid:\n\t\t\t4243\n\t\t\t4242\n\t\t\t4242\n';
    expect(parseKdsStat(text)).toEqual({ executions: 9_007_199_254_740_993n, clients: 3, pids: [4242, 4243] });
  });

  it('has no pids when no process uses the board', () => {
    expect(parseKdsStat('outstanding execs:\t0\ntotal execs:\t\t0\ncontexts:\t\t0\nclient pid:\n')).toEqual({
      executions: 0,
      clients: 0,
      pids: [],
    });
  });

  it.each(['', 'unable to give xclbin id', 'total execs:\t-5\n'])('of %j is nothing', (text) => expect(parseKdsStat(text)).toBeUndefined());
});

describe('memstat_raw', () => {
  const banks = '2147483648 12 0\n1024 1 0\n';
  it.each([
    ['unsigned 32 bit', '4294967274 -22 4294967274'],
    ['unsigned 64 bit', '18446744073709551594 -22 18446744073709551594'],
    ['signed', '-22 -22 -22'],
  ])('ends the banks at a separator printed as %s', (_, separator) => {
    expect(parseMemStat(`${banks}${separator}\n2147484672 13 0\n0 0 0\n`)).toBe(2_147_484_672);
  });
  it('is nothing for text of another form', () => {
    expect(parseMemStat('')).toBeUndefined();
    expect(parseMemStat('[IN-USE] bank0@0x4000000000 (16384MB): 0KB 0BOs')).toBeUndefined();
  });
});

describe('texts of XRT', () => {
  it('gives clocks in hertz, and none for a clock that the shell lacks', () => {
    expect(parseClocks('300\n500\n0\n')).toEqual([300_000_000, 500_000_000, undefined]);
    expect(parseClocks('300 MHz')).toBeUndefined();
  });

  it.each([
    ['xilinx_u250_gen3x16_xdma_shell_4_1', 'u250'],
    ['xilinx_vck5000_gen4x8_qdma_base_2\n', 'vck5000'],
    ['shell', undefined],
  ])('shell %j is of board %s', (text, expected) => expect(boardOfShell(text)).toBe(expected));

  it('recognizes an empty slot', () => {
    expect(parseLoaded('D2D4F4A5-44A9-4D2F-9A8D-3A8D0B9B1F10\n\n')).toBe('d2d4f4a5-44a9-4d2f-9a8d-3a8d0b9b1f10');
    expect(parseLoaded('00000000-0000-0000-0000-000000000000\n')).toBeUndefined();
    expect(parseLoaded('\n')).toBeUndefined();
  });

  it('reads boot flags', () => {
    expect([...parseBootFlags('HAS_FPT:1\nBOOT_ON_BACKUP : 0\nnoise\n')]).toEqual([
      ['HAS_FPT', true],
      ['BOOT_ON_BACKUP', false],
    ]);
  });
});

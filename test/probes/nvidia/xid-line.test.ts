import { describe, expect, it } from 'vitest';
import { type NvidiaLine, parseNvidiaLine } from '../../../src/probes/nvidia/xid-line.ts';

const only = (text: string): NvidiaLine | undefined => parseNvidiaLine({ origin: 'kernel', text });

describe('an Xid line', () => {
  it.each([
    [
      'with process',
      'NVRM: Xid (PCI:0000:3b:00): 31, pid=7194, name=python, Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS',
      { xid: 31, pid: 7194, processName: 'python', text: 'Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS' },
    ],
    [
      'with unknown process',
      "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
      { xid: 79, text: 'GPU has fallen off the bus.' },
    ],
    [
      'with pid and no name',
      'NVRM: Xid (PCI:0000:3b:00): 94, pid=7194, Contained: CE User Channel (0x9). RST: No, D-RST: No',
      { xid: 94, pid: 7194, text: 'Contained: CE User Channel (0x9). RST: No, D-RST: No', resetRequired: false },
    ],
    [
      'with a reset that is required',
      'NVRM: Xid (PCI:0000:3b:00): 94, Contained: SM. RST: Yes, D-RST: No',
      { xid: 94, resetRequired: true },
    ],
    [
      'with a drain that is required',
      'NVRM: Xid (PCI:0000:3b:00): 95, pid=1, Uncontained: FBHUB. RST: No, D-RST: Yes',
      { xid: 95, resetRequired: true },
    ],
    [
      'without process',
      'NVRM: Xid (PCI:0000:3b:00): 63, Row Remapper: New row marked for remapping',
      { xid: 63, text: 'Row Remapper: New row marked for remapping' },
    ],
    [
      'without the word PCI',
      'NVRM: Xid (0000:03:00): 14, Channel 00000001',
      { pciAddress: '0000:03:00.0', xid: 14, text: 'Channel 00000001' },
    ],
    ['with a function', 'NVRM: Xid (PCI:0000:3b:00.0): 43, pid=5, name=a, Ch 1', { xid: 43, pid: 5 }],
    ['with upper case digits', 'NVRM: Xid (PCI:0000:3B:00): 13, Graphics Exception', { pciAddress: '0000:3b:00.0' }],
    ['with a domain of eight digits', 'NVRM: Xid (PCI:00000001:3b:00): 13, x', { pciAddress: '0001:3b:00.0' }],
    ['with a domain that needs more than four', 'NVRM: Xid (PCI:10000:3b:00): 13, x', { pciAddress: '10000:3b:00.0' }],
    [
      'of a compute instance',
      'NVRM: Xid (PCI:0000:01:00 GPU-I:05 GPU-CI:00): 13, pid=9, name=a.out, Graphics SM Warp Exception',
      { xid: 13, gpuInstance: 5, computeInstance: 0, pid: 9, processName: 'a.out', text: 'Graphics SM Warp Exception' },
    ],
    ['of a GPU instance with a decimal number', 'NVRM: Xid (PCI:0000:01:00 GPU-I:13): 45, pid=9, Ch 1', { gpuInstance: 13, pid: 9 }],
    ['without any text', 'NVRM: Xid (PCI:0000:3b:00): 79', { xid: 79, text: '' }],
    ['with a process and no text', 'NVRM: Xid (PCI:0000:3b:00): 45, pid=3, name=train', { xid: 45, processName: 'train', text: '' }],
    ['with a pid and no more', 'NVRM: Xid (PCI:0000:3b:00): 45, pid=3', { xid: 45, pid: 3, text: '' }],
    [
      'with commas and blanks in the name',
      'NVRM: Xid (PCI:0000:3b:00): 31, pid=8, name=my job, part 2, Ch 00000008, intr 1',
      { processName: 'my job, part 2', text: 'Ch 00000008, intr 1' },
    ],
    [
      'with a text that the name cannot be told from',
      'NVRM: Xid (PCI:0000:3b:00): 32, pid=8, name=python, something new, more',
      { processName: 'python', text: 'something new, more' },
    ],
    [
      'that names its cause',
      'NVRM: Xid (PCI:0000:3b:00): 45, pid=8, name=a, Ch 00000010 caused by previous Xid 13',
      { xid: 45, causedBy: 13 },
    ],
    [
      'of a fatal NVLink error',
      'NVRM: Xid (PCI:0000:3b:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x00000000 0x0 0x0 0x0 0x0)',
      { nvlink: { unit: 'NETIR_LINK_EVT', isFatal: true, subcode: 4, link: 8 } },
    ],
    [
      'of an NVLink error that is not fatal, of no link, in a unit with a slash',
      'NVRM: Xid (PCI:0000:3b:00): 146, TLW_RX/TLW_RX_PIPE0 Nonfatal XC1 i0 Link -1 (0x00000000)',
      { nvlink: { unit: 'TLW_RX/TLW_RX_PIPE0', isFatal: false, subcode: 0 } },
    ],
    [
      'of an NVLink error spelled with a dash',
      'NVRM: Xid (PCI:0000:3b:00): 145, RLW_CTRL Non-fatal XC0 i0 Link 03 (0x03f00000)',
      { nvlink: { unit: 'RLW_CTRL', isFatal: false, subcode: 63, link: 3 } },
    ],
    [
      'of a recovery action',
      'NVRM: Xid (PCI:0008:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)',
      { pciAddress: '0008:01:00.0', xid: 154, recoveryAction: { action: 'node_reboot' } },
    ],
    [
      'of a recovery action with a word of other drivers',
      'NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (PF FLR)',
      { recoveryAction: { action: 'gpu_reset' } },
    ],
    [
      'of a recovery action that ends',
      'NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from 0x4 (Drain and Reset) to 0x0 (None)',
      { recoveryAction: { action: 'none' } },
    ],
    [
      'of a recovery action without words',
      'NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from 0x0 to 0x7',
      { recoveryAction: { action: 'system_reboot' } },
    ],
  ])('is read %s', (_, text, fields) => {
    expect(only(text)).toMatchObject({ kind: 'xid', ...fields });
  });

  it('gives no details that it does not contain', () => {
    expect(only("NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.")).toEqual({
      kind: 'xid',
      pciAddress: '0000:3b:00.0',
      xid: 79,
      text: 'GPU has fallen off the bus.',
    });
    expect(only('NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed')).not.toHaveProperty('recoveryAction');
    expect(only('NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from 0x0 to 0x1F')).not.toHaveProperty('recoveryAction');
    expect(only('NVRM: Xid (PCI:0000:3b:00): 149, something else')).not.toHaveProperty('nvlink');
  });

  it.each([
    ['NVRM: Xid : 32, pid=2280636'],
    ['NVRM: Xid (PCI:0000:66:00): abc, pid=2280636'],
    ['NVRM: Xid (PCI:0000:66:00) 79, no colon'],
    ['NVRM: Xid (PCI:zz): 79'],
    ['NVRM: Xid (PCI:0000:66:00): 9999999999, absurd'],
    ['NVRM: GPU0 nvAssertOkFailedNoLog: Assertion failed: Reset required [NV_ERR_RESET_REQUIRED]'],
  ])('is not %j', (text) => {
    expect(only(text)).toEqual({ kind: 'other', isMiddle: false });
  });
});

describe('a line of another part of the kernel', () => {
  it.each([
    ['usb 1-1: Product: x NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.'],
    ['mlx5_core 0000:5d:00.0: Port module event: module 0, Cable unplugged'],
    ['the bus that it has fallen off the bus'],
    [''],
  ])('is of no concern: %j', (text) => {
    expect(only(text)).toBeUndefined();
  });

  it.each(['about-process', 'program'] as const)('is of no concern, whatever it says: %s', (origin) => {
    expect(parseNvidiaLine({ origin, text: 'NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.' })).toBeUndefined();
  });
});

describe('the other lines of the driver', () => {
  it.each([
    [
      'NVRM: GPU at PCI:0000:00:05: GPU-F9CE5B41-1111-2222-3333-444455556666',
      { kind: 'identity', pciAddress: '0000:00:05.0', uuid: 'GPU-f9ce5b41-1111-2222-3333-444455556666' },
    ],
    ['NVRM: GPU Board Serial Number: 1650522003842', { kind: 'other', isMiddle: false }],
    ['NVRM: GPU 0000:18:00.0: GPU has fallen off the bus.', { kind: 'lost', pciAddress: '0000:18:00.0' }],
    ['NVRM: GPU at PCI:0000:18:00: GPU has fallen off the bus.', { kind: 'lost', pciAddress: '0000:18:00.0' }],
    ['NVRM: GPU at 0000:01:00.0 has fallen off the bus.', { kind: 'lost', pciAddress: '0000:01:00.0' }],
    [
      'NVRM: The NVIDIA GPU 0000:05:00.0 installed in this system has fallen off the bus and is not responding to commands.',
      { kind: 'lost', pciAddress: '0000:05:00.0' },
    ],
    ['NVRM: The NVIDIA GPU 0000:18:00.0', { kind: 'gpu-named', pciAddress: '0000:18:00.0' }],
    ['NVRM: (PCI ID: 10de:26b5) installed in this system has', { kind: 'other', isMiddle: true }],
    ['NVRM: fallen off the bus and is not responding to commands.', { kind: 'named-gpu-lost' }],
    [
      'nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error (First)',
      {
        kind: 'switch',
        pciAddress: '0000:05:00.0',
        sxid: 12028,
        isFatal: false,
        link: 32,
        text: 'Non-fatal, Link 32 egress non-posted PRIV error (First)',
      },
    ],
    [
      'nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 11001, Fatal, ingress invalid command',
      { kind: 'switch', pciAddress: '0000:c3:00.0', sxid: 11001, isFatal: true, text: 'Fatal, ingress invalid command' },
    ],
    [
      'nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 11001, Severity 1 Engine instance 7 Sub-engine instance 00',
      { kind: 'switch', pciAddress: '0000:c3:00.0', sxid: 11001, text: 'Severity 1 Engine instance 7 Sub-engine instance 00' },
    ],
    ['NVRM: API mismatch: the client has the version 535.247.01, but', { kind: 'other', isMiddle: false }],
    [
      'NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22 01:44:30 UTC 2024',
      { kind: 'driver-loaded', version: '550.54.14' },
    ],
    ['NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  560.28.03  Release Build', { kind: 'driver-loaded', version: '560.28.03' }],
  ])('%s', (text, line) => {
    expect(only(text)).toEqual(line);
  });

  it('has one meaning when its lines are one record', () => {
    const text =
      'NVRM: The NVIDIA GPU 0000:18:00.0 NVRM: (PCI ID: 10de:26b5) installed in this system has NVRM: fallen off the bus and is not responding to commands.';
    expect(only(text)).toEqual({ kind: 'lost', pciAddress: '0000:18:00.0' });
  });

  it('starts no second message by the name of a process', () => {
    const text =
      'NVRM: Xid (PCI:0000:3b:00): 31, pid=7194, name=a NVRM: Xid (PCI:0000:5e:00): 79, GPU has fallen off the bus., Ch 00000008, intr 00000000';
    expect(only(text)).toMatchObject({ pciAddress: '0000:3b:00.0', xid: 31, pid: 7194 });
  });

  it('are read although one is very long', () => {
    const long = `NVRM: Xid (PCI:0000:3b:00): 31, pid=1, name=${', a'.repeat(20_000)}`;
    expect(only(long)).toMatchObject({ xid: 31 });
  });
});

import { describe, expect, it } from 'vitest';
import { parseBootTimeMs, parseKmsgRecord } from '../../../src/host/kernel-log/record.ts';

describe('a record of the kernel log', () => {
  it('has level, origin, number, time and text', () => {
    expect(parseKmsgRecord('3,1207,93511225417,-;NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n')).toEqual({
      level: 3,
      origin: 'kernel',
      seq: 1207,
      timeUsec: 93_511_225_417,
      text: 'NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.',
    });
  });

  it('names its device in continuation lines', () => {
    const record = '4,9,5,-;nvidia 0000:3b:00.0: enabling device\n SUBSYSTEM=pci\n DEVICE=+pci:0000:3b:00.0\n';
    expect(parseKmsgRecord(record)).toMatchObject({ subsystem: 'pci', device: '+pci:0000:3b:00.0' });
  });

  it('is from a program when its facility is not that of the kernel', () => {
    expect(parseKmsgRecord('12,344,4100703121,-;device-agent test\n')).toMatchObject({ level: 4, origin: 'program' });
    expect(parseKmsgRecord('30,1,1,-;systemd[1]: hello')).toMatchObject({ level: 6, origin: 'program' });
  });

  it('skips fields that later kernels add before the semicolon', () => {
    expect(parseKmsgRecord('6,339,5140900,c,caller=T3127,new=1;text; with, both')).toMatchObject({ seq: 339, text: 'text; with, both' });
  });

  it.each([
    ['a line feed within a message, as a space', String.raw`6,1,2,-;first\x0asecond`, 'first second'],
    ['other ends of a line, as spaces', String.raw`6,1,2,-;a\x0d\x0b\xc2\x85b\xe2\x80\xa8c`, 'a b c'],
    ['a character of several bytes', String.raw`6,1,2,-;50 \xc2\xb0C`, '50 °C'],
    ['a backslash', String.raw`6,1,2,-;C:\x5cx41`, String.raw`C:\x41`],
    ['bytes that are no UTF-8', String.raw`6,1,2,-;a\xffb`, 'a\ufffdb'],
    ['an incomplete escape', String.raw`6,1,2,-;a\x4`, String.raw`a\x4`],
    ['an empty text', '6,1,2,-;', ''],
  ])('decodes %s', (_, record, text) => {
    expect(parseKmsgRecord(record)?.text).toBe(text);
  });

  it.each([
    [''],
    ['\n'],
    ['NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.'],
    ['[  123.456789] NVRM: loading'],
    ['6,1,2;no flags'],
    ['6,1,-;too few'],
    ['-6,1,2,-;negative'],
    ['6,1,2,- no semicolon'],
    [' SUBSYSTEM=pci'],
    ['99999999999999999999,1,2,-;absurd'],
  ])('is not %j', (record) => {
    expect(parseKmsgRecord(record)).toBeUndefined();
  });

  it('ignores continuation lines without key or value', () => {
    expect(parseKmsgRecord('6,1,2,-;text\n =x\n SUBSYSTEM\nDEVICE=+pci:0\n')).toEqual({
      level: 6,
      origin: 'kernel',
      seq: 1,
      timeUsec: 2,
      text: 'text',
    });
  });
});

describe('the time of the boot', () => {
  it('is in /proc/stat', () => {
    expect(parseBootTimeMs('cpu  1 2 3\nintr 5\nbtime 1767225600\nprocesses 7\n')).toBe(1_767_225_600_000);
    expect(parseBootTimeMs('cpu  1 2 3\n')).toBeUndefined();
    expect(parseBootTimeMs('')).toBeUndefined();
  });
});

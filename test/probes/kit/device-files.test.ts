import { describe, expect, it } from 'vitest';
import type { Tree } from '../../../src/host/fs/tree.ts';
import { DeviceFiles, noValueOf } from '../../../src/probes/kit/device-files.ts';
import { firstLine } from '../../../src/probes/kit/text.ts';

/** A tree in which each file is the name of an error, or its own content. */
const tree = {
  read: (path: string) => {
    const name = path.slice('card/'.length).replace(/\d+$/, '');
    return /^E[A-Z]+$/.test(name) ? { error: name } : { text: name === 'empty' ? '\n' : `${name}\n` };
  },
} as unknown as Tree;

const messages = ({ problems }: DeviceFiles): readonly string[] => problems.map(({ code, message }) => `${code} ${message}`);

describe('the error of a read', () => {
  it.each([
    ['absent', ['ENOENT', 'ENOTDIR', 'ENODATA', 'EOPNOTSUPP', 'empty']],
    ['silent', ['ENODEV', 'ENXIO', 'EHUNG']],
    ['busy', ['EBUSY', 'EAGAIN']],
    ['refused', ['EACCES', 'EPERM']],
    ['failed', ['EIO', 'EINVAL', 'EISDIR', 'ETIMEDOUT', 'ETOOLARGE']],
  ])('means %s for %j', (meaning, errors) => {
    for (const error of errors) expect([error, noValueOf(error)]).toEqual([error, meaning]);
  });

  it('is no problem unless the agent or the driver failed', () => {
    const files = new DeviceFiles(tree, 'card', { device: 'x' });
    for (const file of ['ENOENT', 'empty', 'ENODEV', 'EBUSY', 'EHUNG']) expect(files.text(file)).toBeUndefined();
    expect(files.problems).toEqual([]);
    expect([files.isHung, files.refused, files.answered]).toEqual([true, 1, 0]);
    expect(files.text('card')).toBe('card');
    expect(files.answered).toBe(1);
  });

  it('is one problem for all files of a directory, with the device', () => {
    const files = new DeviceFiles(tree, 'card', { device: 'x' });
    for (const file of ['EIO2', 'EACCES', 'EIO1', 'EIO2']) files.text(file);
    files.problem('other', 'told');
    files.value('word', () => undefined);
    expect(messages(files)).toEqual([
      'read-failed /sys/card: EIO of EIO1, EIO2',
      'permission-denied /sys/card: EACCES of EACCES',
      'other told',
      'unparsable /sys/card: unparsable of word',
    ]);
    expect(files.problems.every(({ device }) => device === 'x')).toBe(true);
  });

  it('can mean something else for one driver', () => {
    const files = new DeviceFiles(tree, 'card', { errors: { EPERM: 'busy', EINVAL: 'silent' } });
    expect([files.once('EPERM', firstLine), files.once('EINVAL', firstLine), files.refused, messages(files)]).toEqual([
      { isUnknown: true, error: 'EPERM' },
      { isUnknown: true, error: 'EINVAL' },
      1,
      [],
    ]);
  });
});

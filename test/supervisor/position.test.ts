import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { PositionFile, positionWriter } from '../../src/supervisor/position.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'device-agent-position-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

it('is the latest word, counts the writes, and stays known after the end', () => {
  const file = new PositionFile([join(directory, 'none'), directory]);
  expect(file.read()).toEqual({ writes: 0, step: undefined });
  const say = positionWriter(file.descriptor as number);
  say({ kind: 'file', path: '/sys/class/net/ein lang\nüber' });
  expect(file.read()).toEqual({ writes: 1, step: { kind: 'file', path: '/sys/class/net/ein lang\nüber' } });
  say({ kind: 'call', path: 'nvml/x' });
  expect(file.read()).toEqual({ writes: 2, step: { kind: 'call', path: 'nvml/x' } });
  say(undefined);
  expect(file.read()).toEqual({ writes: 3, step: undefined });
  say({ kind: 'file', path: '/a' });
  expect(readdirSync(directory), 'the file has no name').toEqual([]);
  file.close();
  file.close();
  expect(file.read()).toEqual({ writes: 4, step: { kind: 'file', path: '/a' } });
});

it('is unknown where no directory is writable', () => {
  const file = new PositionFile([join(directory, 'none')]);
  expect([file.descriptor, file.read()]).toEqual(['ignore', { writes: 0, step: undefined }]);
  file.close();
});

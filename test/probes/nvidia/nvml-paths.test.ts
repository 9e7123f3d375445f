import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { libraryCandidates, resolveWithin } from '../../../src/probes/nvidia/nvml/library.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'device-agent-library-paths-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function place(path: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), '');
}
function link(path: string, target: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  symlinkSync(target, join(root, path));
}
const found = (): string[] => libraryCandidates(root).map((file) => file.slice(root.length + 1));

describe('the library is found', () => {
  it.each([
    ['on Debian', 'usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1'],
    ['on Debian with alternatives', 'usr/lib/x86_64-linux-gnu/nvidia/current/libnvidia-ml.so.1'],
    ['on Red Hat', 'usr/lib64/libnvidia-ml.so.1'],
    ['on arm64', 'usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1'],
    ['on Jetson', 'usr/lib/aarch64-linux-gnu/nvidia/libnvidia-ml.so.1'],
    ['in the driver container, from the host', 'run/nvidia/driver/usr/lib64/libnvidia-ml.so.1'],
    ['in the driver container, mounted into a pod', 'driver-root/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1'],
    ['on GKE, in a pod', 'usr/local/nvidia/lib64/libnvidia-ml.so.1'],
    ['on GKE, on the host', 'home/kubernetes/bin/nvidia/lib64/libnvidia-ml.so.1'],
    ['under WSL', 'usr/lib/wsl/lib/libnvidia-ml.so.1'],
    ['in the driver store of WSL', 'usr/lib/wsl/drivers/nv_dispi.inf_amd64_1/libnvidia-ml.so.1'],
  ])('%s', (_, path) => {
    place(path);
    expect(found()).toEqual([path]);
  });

  it('through links, which are relative to the root in which they lie', () => {
    place('run/nvidia/driver/usr/lib/real/libnvidia-ml.so.590.44.01');
    link('run/nvidia/driver/usr/lib64/libnvidia-ml.so.1', '/usr/lib/real/libnvidia-ml.so.590.44.01');
    expect(found()).toEqual(['run/nvidia/driver/usr/lib/real/libnvidia-ml.so.590.44.01']);
  });

  it("in the machine's own root before a driver container", () => {
    place('run/nvidia/driver/usr/lib64/libnvidia-ml.so.1');
    place('usr/lib64/libnvidia-ml.so.1');
    expect(found()).toEqual(['usr/lib64/libnvidia-ml.so.1', 'run/nvidia/driver/usr/lib64/libnvidia-ml.so.1']);
  });

  it('nowhere on a machine without it', () => {
    place('usr/lib64/libnvidia-ml.so');
    expect(found()).toEqual([]);
  });
});

describe('a link', () => {
  it('cannot leave its root by going up', () => {
    place('inside/file');
    place('outside');
    link('inside/up', '../../../outside');
    expect(resolveWithin(join(root, 'inside'), 'up')).toBeUndefined();
  });

  it('in a cycle gives no file', () => {
    link('a', 'b');
    link('b', 'a');
    expect(resolveWithin(root, 'a')).toBeUndefined();
  });

  it('with a relative target is resolved from its folder', () => {
    place('usr/lib/x/real.so');
    link('usr/lib/x/lib.so', 'real.so');
    expect(resolveWithin(root, 'usr/lib/x/lib.so')).toBe(join(root, 'usr/lib/x/real.so'));
  });
});

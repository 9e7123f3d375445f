import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../../src/host/clock.ts';
import { createHost, type Host } from '../../../src/host/host.ts';
import { compiledLibrary } from '../../support/compiled-library.ts';

import { type ScriptedNode, scriptOf } from './scripted-script.ts';

/** A node whose library answers from a script that can change at any time. */
export interface LiveNode {
  readonly root: string;
  readonly library: string;
  readonly host: Host;
  write(node: ScriptedNode): void;
  remove(): void;
}

export function liveNode(node: ScriptedNode, hostOf: (root: string) => Host = plainHost): LiveNode {
  const root = mkdtempSync(join(tmpdir(), 'device-agent-nvml-'));
  const { path: library, write } = scriptedLibrary(root, node);
  for (const folder of ['sys/bus/pci/devices', 'proc', 'dev']) mkdirSync(join(root, folder), { recursive: true });
  return { root, library, host: hostOf(root), write, remove: () => rmSync(root, { recursive: true, force: true }) };
}

/** The library in a directory. `write` changes what it answers. */
export function scriptedLibrary(root: string, node: ScriptedNode): { readonly path: string; write(node: ScriptedNode): void } {
  const path = join(root, 'libnvidia-ml.so.1');
  copyFileSync(compiledLibrary('test/probes/nvidia/stub/nvml.c'), path);
  let writes = 0;
  const write = (next: ScriptedNode): void => {
    // Each version has another length, so that a coarse clock cannot hide the change.
    writes += 1;
    writeFileSync(`${path}.script`, `${scriptOf(next)}# ${'x'.repeat(writes)}\n`);
  };
  write(node);
  return { path, write };
}

export const plainHost = (root: string): Host =>
  createHost({ sysfs: join(root, 'sys'), procfs: join(root, 'proc'), dev: join(root, 'dev') }, systemClock);

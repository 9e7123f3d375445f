import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, existsSync, lchownSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readFamilyDirectory } from '../../../src/config/families/family-directory.ts';
import { familyOf } from '../../../src/probes/declared/family.ts';
import { lookAt } from '../../probes/declared/support.ts';
import { repetitions } from '../../support/repetitions.ts';
import { unless } from '../../support/skipped.ts';

/** Any user but root. */
const STRANGER = 4_711;
const LOADS = repetitions(150, 2_000);
const isRoot = process.getuid?.() === 0;

let base: string;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'device-agent-swap-'));
  chmodSync(base, 0o755);
});
afterEach(() => rmSync(base, { recursive: true }));

const text = (commands: string): string =>
  `family: tool\nsummary: Devices of a tool\n${commands}devices:\n  - { kind: card, find: { sysfs: 'class/tool/tool#' }, id: '{name}' }\n`;

describe.skipIf(!isRoot)(`declarations that another user swaps while they are loaded${unless(isRoot, 'it needs root')}`, () => {
  it.each(['link', 'directory'])('never run a program: %s', async (kind) => {
    const marker = join(base, 'ran');
    const [home, program] = [join(base, 'home'), join(base, 'tool')];
    writeFileSync(program, `#!/bin/sh\ntouch ${marker}\necho '[]'\n`, { mode: 0o755 });
    const trusted = join(kind === 'link' ? base : home, 'trusted');
    const [place, hostile] = [join(home, 'families'), join(home, 'hostile')];
    mkdirSync(home);
    // The trusted directory belongs to root; the place is a link to it, or the directory itself.
    const first = kind === 'link' ? trusted : place;
    for (const directory of [first, hostile]) mkdirSync(directory, { mode: 0o755 });
    writeFileSync(join(first, 'tool.yaml'), text(''), { mode: 0o644 });
    writeFileSync(join(hostile, 'tool.yaml'), text(`commands: { ls: { path: ${program}, format: json } }\n`), { mode: 0o644 });
    if (kind === 'link') symlinkSync(trusted, place);
    for (const path of [home, hostile, join(hostile, 'tool.yaml')]) chownSync(path, STRANGER, STRANGER);
    if (kind === 'link') lchownSync(place, STRANGER, STRANGER);
    const swapper = spawn(process.execPath, ['test/config/families/swapper.mjs', kind, place, trusted, hostile], {
      uid: STRANGER,
      gid: STRANGER,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    // Rejects when the program cannot be started.
    await once(swapper, 'spawn');
    try {
      await once(swapper.stdout, 'data');
      let hostileLoads = 0;
      for (let load = 0; load < LOADS; load += 1) {
        const read = await readFamilyDirectory({ path: place, isGiven: true }).catch(() => undefined);
        for (const declared of read?.families ?? []) {
          if (declared.declaration.commands === undefined) continue;
          hostileLoads += 1;
          await lookAt(familyOf(declared), base);
        }
        if (existsSync(marker)) break;
      }
      expect(swapper.exitCode).toBeNull();
      expect([hostileLoads, existsSync(marker)]).toEqual([0, false]);
    } finally {
      swapper.kill('SIGKILL');
      await once(swapper, 'exit');
    }
  });
});

import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/host/clock.ts';
import { createHost } from '../../../src/host/host.ts';
import { Surroundings } from '../../../src/probes/nvidia/surroundings.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'device-agent-surroundings-'));
  mkdirSync(join(root, 'dev'));
});
afterEach(() => rmSync(root, { recursive: true }));

const around = (): Surroundings =>
  new Surroundings(createHost({ sysfs: join(root, 'sys'), procfs: join(root, 'proc'), dev: join(root, 'dev') }, systemClock));
function write(path: string, text = ''): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}
/** What happened long ago is not looked at twice. */
const age = (path: string): void => utimesSync(join(root, path), 1_700_000_000, 1_700_000_000);
const MINORS = 'proc/driver/nvidia-caps/mig-minors';

describe('what surrounds a GPU', () => {
  it('is the same text while nothing came or went', () => {
    write('dev/nvidiactl');
    age('dev');
    const surroundings = around();
    const first = surroundings.look(false);
    expect(first).toBe('nvidiactl ');
    expect(surroundings.look(false)).toBe(first);
  });

  it('has a node that is made later, and has it no more once it is gone', () => {
    write('dev/nvidiactl');
    age('dev');
    const surroundings = around();
    surroundings.look(false);
    write('dev/nvidia-uvm');
    expect(surroundings.look(false)).toBe('nvidiactl,nvidia-uvm ');
    rmSync(join(root, 'dev/nvidia-uvm'));
    expect(surroundings.look(false)).toBe('nvidiactl ');
  });

  it('has the minors of instances where there are any, also those that are listed later or anew', () => {
    write('dev/nvidiactl');
    const surroundings = around();
    expect(surroundings.look(false)).toBe('nvidiactl ');
    expect(surroundings.look(true)).toBe('nvidiactl ');
    write(MINORS, 'gpu0/gi7/access 66\n');
    expect(surroundings.look(true)).toBe('nvidiactl gpu0/gi7/access 66');
    age(MINORS);
    write(MINORS, 'gpu0/gi7/access 67\n');
    expect(surroundings.look(true)).toBe('nvidiactl gpu0/gi7/access 67');
    expect(surroundings.look(false)).toBe('nvidiactl ');
  });
});

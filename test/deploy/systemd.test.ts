import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { imageStart } from '../support/image.ts';
import { unless } from '../support/skipped.ts';

const UNIT = 'deploy/systemd/device-agent.service';
const text = readFileSync(UNIT, 'utf8');
/** Values of each setting, in the order of the file. */
const settings = new Map<string, string[]>();
for (const [, name = '', value = ''] of text.matchAll(/^(\w+)=(.*)$/gm)) settings.set(name, [...(settings.get(name) ?? []), value]);
const isThere = spawnSync('systemd-analyze', ['--version']).error === undefined;

describe('the unit of systemd', () => {
  it('starts the agent with the flags and variables of the image', () => {
    const start = imageStart('deploy/Dockerfile');
    expect(settings.get('ExecStart')).toEqual([['/usr/bin/node', ...start.entrypoint.slice(1), ...start.arguments].join(' ')]);
    const variables = (settings.get('Environment') ?? []).flatMap((line) => line.split(' '));
    expect(variables).toEqual(expect.arrayContaining(Object.entries(start.env).map(([name, value]) => `${name}=${value}`)));
  });

  it('reads the file and the variables that are documented', () => {
    expect(settings.get('Environment')).toContain('DEVICE_AGENT_CONFIG_FILE=/etc/device-agent/config.yaml');
    expect(settings.get('EnvironmentFile')).toEqual(['-/etc/default/device-agent']);
    expect(settings.get('StateDirectory')).toEqual(['device-agent']);
  });

  it('writes to few places, opens few devices and no kernel log, and has no capability', () => {
    expect(settings.get('ProtectSystem')).toEqual(['strict']);
    expect(settings.get('NoNewPrivileges')).toEqual(['yes']);
    expect(settings.get('CapabilityBoundingSet')).toEqual(['']);
    expect([settings.get('DevicePolicy'), settings.get('DeviceAllow')]).toEqual([['closed'], ['char-nvidia* rw']]);
    expect(settings.has('MemoryDenyWriteExecute')).toBe(false);
  });

  it('gives a reason above each group of what confines it', () => {
    const confining = text.slice(text.indexOf('StateDirectory='), text.indexOf('[Install]'));
    const groups = confining.trim().split(/\n\n/).slice(1);
    expect(groups.length).toBeGreaterThan(3);
    expect(groups.filter((group) => !group.startsWith('#'))).toEqual([]);
  });
});

describe.skipIf(!isThere)(`the unit, as systemd reads it${unless(isThere, 'systemd-analyze is not installed')}`, () => {
  const directory = mkdtempSync(join(tmpdir(), 'device-agent-unit-'));
  const path = join(directory, 'device-agent.service');
  // The program need not lie where the unit says, on this machine.
  writeFileSync(path, text.replace('=/usr/bin/node ', `=${process.execPath} `));
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  it('has no setting that systemd does not know', () => {
    const { stdout, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', path], { encoding: 'utf8' });
    expect(`${stdout}${stderr}`.split('\n').filter((line) => line.includes('device-agent.service'))).toEqual([]);
  });

  it('is exposed little', () => {
    const report = execFileSync('systemd-analyze', ['security', '--offline=true', '--no-pager', path], { encoding: 'utf8' });
    const exposure = Number(/exposure level for device-agent\.service: ([\d.]+)/.exec(report)?.[1]);
    expect(exposure, report).toBeLessThanOrEqual(4);
  });
});

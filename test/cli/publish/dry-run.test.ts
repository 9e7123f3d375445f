import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { publishOptions } from '../../../src/cli/publish/options.ts';
import { dryRunText } from '../../../src/cli/publish/publish.ts';
import { defaultValues } from '../../../src/model/options.ts';
import type { DeviceFamily } from '../../../src/probes/family.ts';
import type { WholeDevice } from '../../../src/server/api/views.ts';
import { run } from '../command-line.ts';
import { toldBoard, toldDevice } from './on-clock.ts';

const LOST = {
  type: 'FanLost',
  severity: 'fatal',
  reason: 'Gone',
  message: 'the fan is gone',
  remedy: 'replace',
  since: '2026-03-01T12:00:00Z',
} as const;
const sick = (more: Partial<WholeDevice> = {}, message: string = LOST.message): WholeDevice =>
  toldDevice('fan-0', 'unhealthy', { health: { state: 'unhealthy', conditions: [{ ...LOST, message }] }, ...more });
const named = (...names: readonly { driver: string; device: string }[]): DeviceFamily =>
  ({ name: 'fan', claimNames: () => names }) as unknown as DeviceFamily;
const FAN = named({ driver: 'fan.example.com', device: 'fan-0' });

const text = (devices: readonly WholeDevice[], family = FAN, more: object = {}): Promise<string> => {
  const settings = { ...defaultValues(publishOptions), 'device-taint-rules': 'NoSchedule', node: 'node-1', families: [family], ...more };
  return dryRunText(toldBoard(devices, { families: [{ family: 'fan', complete: true, devices: 1, state: 'works' }] }), settings);
};
const rules = async (...given: Parameters<typeof text>): Promise<unknown[]> =>
  parseAllDocuments(await text(...given))
    .map((document) => document.toJS() as unknown)
    .filter((rule) => rule !== null);

describe('publish --dry-run', () => {
  it('prints the rule of a sick device as the publisher writes it', async () => {
    expect(await rules([sick(), toldDevice('fan-1', 'healthy')])).toEqual([
      {
        apiVersion: 'resource.k8s.io/v1',
        kind: 'DeviceTaintRule',
        metadata: {
          name: 'device-agent-publish.fan.example.com.node-1.fan-0',
          labels: { 'device-agent/node': 'node-1', 'app.kubernetes.io/managed-by': 'device-agent-publish' },
          annotations: { 'device-agent/device': 'fan/fan-0' },
        },
        spec: {
          deviceSelector: { driver: 'fan.example.com', pool: 'node-1', device: 'fan-0' },
          taint: { key: 'device-agent/unhealthy', value: 'FanLost', effect: 'NoSchedule' },
        },
      },
    ]);
  });

  it('takes the name from a claim that holds it, once for several holders, and not from one that holds a part', async () => {
    const claim = { name: 'c', namespace: 'n', driver: 'gizmo.example.com', pool: 'Pool/A', device: 'g-1' };
    const holder = { namespace: 'n', pod: 'p', container: 'c', resource: claim.driver, deviceId: 'x', claim };
    const [one, ...others] = await rules([
      sick({ holders: [holder, holder, { ...holder, claim: { ...claim, device: 'g-2' }, part: 'a' }] }),
    ]);
    expect(others).toEqual([]);
    expect(one).toMatchObject({
      metadata: { name: 'device-agent-publish.gizmo.example.com.pool-a.g-1' },
      spec: { deviceSelector: { driver: 'gizmo.example.com', pool: 'Pool/A', device: 'g-1' } },
    });
  });

  it('tells of a device that no driver has a name for, and takes one name of each driver', async () => {
    expect(await rules([sick()], named())).toEqual([]);
    expect(await text([sick()], named())).toContain('# fan/fan-0 has no rule');
    const names = ['pci-0000-3b-00-0', 'eth0'].map((device) => ({ driver: 'dra.net', device }));
    expect(await rules([sick()], named(...names))).toMatchObject([{ spec: { deviceSelector: { device: 'pci-0000-3b-00-0' } } }]);
  });

  it('prints conditions and the taint of the node as comments, and no rule where rules are off', async () => {
    const all = await text([sick()], FAN, { 'device-taint-rules': 'off', 'node-taint': 'NoExecute' });
    expect(parseAllDocuments(all).flatMap((document) => document.toJS() ?? [])).toEqual([]);
    expect(all).toContain('# node-1: DevicesUnhealthy True (FatalCondition): 1 of 1 devices is unhealthy: fan/fan-0 FanLost (replace)\n');
    expect(all).toContain('# node-1: taint device-agent/unhealthy:NoExecute\n');
    expect(await text([toldDevice('fan-0', 'healthy')], FAN, { 'node-taint': 'NoExecute' })).not.toContain('taint device-agent');
  });

  it('keeps text from hardware inside one comment', async () => {
    expect(await rules([sick({}, 'bad\nkind: Secret\n---')])).toHaveLength(1);
  });

  it('needs an agent', async () => {
    expect(await run(['publish', '--dry-run', '--web.listen-address=127.0.0.1:1'])).toMatchObject({
      status: 1,
      stdout: '',
      stderr: expect.stringContaining('no agent answers'),
    });
  });
});

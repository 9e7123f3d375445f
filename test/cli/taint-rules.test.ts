import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { type SickDevice, taintRules } from '../../src/cli/health/taint-rules.ts';

const sick = (part: Partial<SickDevice> = {}): SickDevice => ({
  key: 'nvidia/GPU-aa',
  condition: 'GpuLost',
  message: 'the GPU has fallen off the bus',
  claims: [],
  names: [{ driver: 'gpu.nvidia.com', device: 'gpu-0' }],
  ...part,
});
const rules = (devices: readonly SickDevice[]): unknown[] =>
  parseAllDocuments(taintRules(devices, 'node-1'))
    .map((document) => document.toJS() as unknown)
    .filter((rule) => rule !== null);

describe('taint rules', () => {
  it('taint a device under the name that its driver gives it', () => {
    expect(rules([sick()])).toEqual([
      {
        apiVersion: 'resource.k8s.io/v1',
        kind: 'DeviceTaintRule',
        metadata: { name: 'device-agent.gpu.nvidia.com.node-1.gpu-0' },
        spec: {
          deviceSelector: { driver: 'gpu.nvidia.com', pool: 'node-1', device: 'gpu-0' },
          taint: { key: 'device-agent/unhealthy', value: 'GpuLost', effect: 'NoSchedule' },
        },
      },
    ]);
  });

  it('take the name from a claim that holds it, once for several holders', () => {
    const claim = { driver: 'gizmo.example.com', pool: 'Pool/A', device: 'g-1' };
    expect(rules([sick({ claims: [claim, { ...claim }] })])).toMatchObject([
      { metadata: { name: 'device-agent.gizmo.example.com.pool-a.g-1' }, spec: { deviceSelector: claim } },
    ]);
  });

  it('tell of a device that no driver has a name for, and take one name of each driver', () => {
    expect(rules([sick({ names: [] })])).toEqual([]);
    expect(taintRules([sick({ names: [] })], 'node-1')).toContain('# nvidia/GPU-aa has no rule');
    const names = ['pci-0000-3b-00-0', 'eth0'].map((device) => ({ driver: 'dra.net', device }));
    expect(rules([sick({ names })])).toMatchObject([{ spec: { deviceSelector: { device: 'pci-0000-3b-00-0' } } }]);
  });

  it('keep text from hardware inside one comment', () => {
    expect(rules([sick({ message: 'bad\nkind: Secret\n---' })])).toHaveLength(1);
  });
});

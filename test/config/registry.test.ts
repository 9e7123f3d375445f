import { describe, expect, it } from 'vitest';
import { createRegistry } from '../../src/config/registry.ts';
import { stringOption } from '../../src/model/options.ts';
import { testRegistry } from './registry.ts';

describe('registry', () => {
  it.each([
    ['log.level', '--log.level', undefined, 'DEVICE_AGENT_LOG_LEVEL', 'log.level'],
    ['probe.nvidia', '--probe.nvidia', '--no-probe.nvidia', 'DEVICE_AGENT_PROBE_NVIDIA', 'probe.nvidia.enabled'],
    ['probe.nvidia.smi-path', '--probe.nvidia.smi-path', undefined, 'DEVICE_AGENT_PROBE_NVIDIA_SMI_PATH', 'probe.nvidia.smi-path'],
    ['probe.nvidia.strict', '--probe.nvidia.strict', '--no-probe.nvidia.strict', 'DEVICE_AGENT_PROBE_NVIDIA_STRICT', 'probe.nvidia.strict'],
    ['config.file', '--config.file', undefined, 'DEVICE_AGENT_CONFIG_FILE', undefined],
  ])('gives %s its flag, negation, variable and place', (key, flag, negation, environment, place) => {
    const entry = testRegistry().byKey(key);
    expect([entry.flag, entry.negation, entry.environment, entry.filePath?.join('.')]).toEqual([flag, negation, environment, place]);
    expect(testRegistry().byEnvironment(environment)).toMatchObject({ key });
  });

  it('refuses two options with one environment variable', () => {
    const options = { 'a-b': stringOption('', ''), 'a.b': stringOption('', '') };
    expect(() => createRegistry([{ path: 'x', title: '', options }])).toThrow('DEVICE_AGENT_X_A_B');
  });

  it('refuses an option that takes the place of a switch', () => {
    const section = { path: 'x', title: '', options: { enabled: stringOption('', '') } };
    expect(() => createRegistry([{ ...section, toggle: { kind: 'boolean', default: true, help: '' } }])).toThrow('x.enabled');
  });
});

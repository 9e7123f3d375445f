import { wordOf } from './codes.ts';
import type { Getter } from './getter.ts';
import { FABRIC_V1, FABRIC_V2, FABRIC_V3 } from './layouts.ts';
import type { Memory } from './memory.ts';
import type { Values } from './sheet.ts';
import { FABRIC_COMPLETED, FABRIC_CONFIGURATION_SHIFT, FABRIC_FAULT_SHIFTS, FABRIC_HEALTH_WORDS, FABRIC_STATE_WORDS } from './words.ts';

const FABRIC_FAULTS = Object.entries(FABRIC_FAULT_SHIFTS).map(([fault, shift]) => ({ path: `nvml/fabric/${fault}`, shift }));
const FABRIC_CONFIGURATION = 'nvml/fabric/configuration';

/** State and health of the GPU's registration with its NVLink fabric. */
export const fabric: Getter = {
  paths: ['fabric/state', 'fabric/status', 'fabric/health/summary', ...FABRIC_FAULTS.map(({ path }) => path), FABRIC_CONFIGURATION],
  ways: [
    { symbol: 'nvmlDeviceGetGpuFabricInfoV', struct: FABRIC_V3, tell: (out, values) => fabricState(out, values, FABRIC_V3) },
    { symbol: 'nvmlDeviceGetGpuFabricInfoV', struct: FABRIC_V2, tell: (out, values) => fabricState(out, values, FABRIC_V2) },
    { symbol: 'nvmlDeviceGetGpuFabricInfo', size: FABRIC_V1.size, tell: (out, values) => fabricState(out, values, FABRIC_V1) },
  ],
};

interface FabricLayout {
  readonly status: number;
  readonly state: number;
  readonly healthMask?: number;
  readonly healthSummary?: number;
}

function fabricState(out: Memory, values: Values, layout: FabricLayout): void {
  const state = out.u8(layout.state);
  values['fabric/state'] = FABRIC_STATE_WORDS[state];
  // The status means something once the registration has ended.
  values['fabric/status'] = state === FABRIC_COMPLETED ? wordOf(out.u32(layout.status)) : 'N/A';
  values['fabric/health/summary'] = layout.healthSummary === undefined ? undefined : FABRIC_HEALTH_WORDS[out.u8(layout.healthSummary)];
  if (layout.healthMask === undefined) return;
  const mask = out.u32(layout.healthMask);
  for (const { path, shift } of FABRIC_FAULTS) {
    const told = (mask >>> shift) & 3;
    values[path] = told === 1 ? 1 : told === 2 ? 0 : undefined;
  }
  const configuration = (mask >>> FABRIC_CONFIGURATION_SHIFT) & 15;
  values[FABRIC_CONFIGURATION] = configuration === 0 ? undefined : configuration === 1 ? 0 : 1;
}

import type { KnownNames } from '../../model/known-text.ts';
import type { Shape } from './shapes.ts';

export type Form = Shape | 'designs' | 'binary';
const FORMS = ['texts', 'values', 'names', 'designs', 'binary'] as const satisfies readonly Form[];

/** Files that more than one family reads, by the names that the kernel gives them. Source: Linux Documentation/ABI/testing. */
export const KERNEL_FILES: KnownNames = {
  values: [
    // PCI functions.
    ...['vendor', 'device', 'subsystem_vendor', 'subsystem_device', 'class', 'revision', 'numa_node', 'power_state', 'runtime_status'],
    ...['current_link_speed', 'current_link_width', 'max_link_speed', 'max_link_width', 'aer_*', 'sriov_totalvfs', 'sriov_numvfs'],
    // Sensors.
    ...['temp#_*', 'fan#_*', 'power#_*', 'in#_*', 'curr#_*', 'freq#_*', 'energy#_*', 'pwm#', 'pwm#_*'],
    ...['runtime_active_time', 'cpulist'],
  ],
  texts: ['iommu_groups/#/type'],
  names: ['name', 'uevent', 'dev'],
};

/** Names of identities, whatever a declaration of another family says about a file of the same name. */
const IDENTITY = /(?:^|\/)(?:\w*serial\w*|uuid|\w*guid|wwid|eui|nguid|unique_id|vpd|hostnqn|hostid)$/;

/** Finds the form of a file or a cell by its name. */
export class KnownNamesIndex {
  readonly #patterns: readonly (readonly [Form, RegExp])[];

  constructor(known: readonly KnownNames[]) {
    this.#patterns = FORMS.flatMap((form) => {
      const names = [...new Set(known.flatMap((one) => one[form] ?? []))];
      return names.length === 0 ? [] : [[form, new RegExp(`(?:^|/)(?:${names.map(source).join('|')})$`)] as const];
    });
  }

  /** `nothing` for a name that is not known. */
  of(path: string): Form {
    if (IDENTITY.test(path)) return 'nothing';
    return this.#patterns.find(([, pattern]) => pattern.test(path))?.[0] ?? 'nothing';
  }
}

const source = (name: string): string =>
  name
    .replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&')
    .replaceAll('*', '[^/]*')
    .replaceAll('#', '\\d+');

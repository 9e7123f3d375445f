import type { CheckpointRead } from '../kubelet/checkpoint/checkpoint.ts';
import type { ClaimFileProblem } from '../kubelet/claims/cdi-reader.ts';
import type { ChangeLog, Trouble } from '../log/changes.ts';
import type { Logger } from '../log/logger.ts';
import type { PluginStats } from '../model/agent-stats.ts';
import type { ProblemSpec } from '../model/collection.ts';
import { defined } from '../model/defined.ts';
import type { Device } from '../model/device.ts';
import { firstOf } from '../model/one-line.ts';
import type { AllocationState, FamilyState, Snapshot } from '../model/snapshot.ts';
import type { DeviceFamily } from '../probes/family.ts';
import { supervisorProblems } from '../supervisor/problems.ts';

/** Files of claims that are logged. The metric counts all of them. */
const MOST_FILES = 20;

/** Logs each problem of a snapshot once when it begins, with its remedy, and once when it ends. */
export class ProblemLog {
  readonly #changes: ChangeLog;
  readonly #specs: ReadonlyMap<string, ReadonlyMap<string, ProblemSpec>>;

  constructor(changes: ChangeLog, families: readonly DeviceFamily[]) {
    this.#changes = changes;
    this.#specs = new Map(
      families.map((family) => [family.name, new Map([...supervisorProblems, ...family.problems].map((spec) => [spec.code, spec]))]),
    );
  }

  update(snapshot: Snapshot): void {
    for (const family of snapshot.families) this.#changes.update(`probe ${family.family}`, this.#probeTroubles(family));
    const kubelet = snapshot.podResources.problem;
    this.#changes.update(
      'kubelet',
      kubelet === undefined
        ? []
        : [
            {
              key: kubelet.reason,
              message: 'the kubelet cannot be queried',
              // Another problem may have replaced this one, so the line must not say that the kubelet answers.
              ended: 'the kubelet could not be queried; this problem ended',
              fields: { reason: kubelet.reason },
              detail: kubelet.message,
            },
          ],
    );
    this.#changes.update('allocations', snapshot.allocations.filter(({ unresolved }) => unresolved === 'ambiguous').map(ambiguous));
    this.#changes.update('claims', snapshot.allocations.flatMap(contradicted));
  }

  /** Logs a checkpoint that cannot be used, once. */
  checkpoint(problem: CheckpointRead['problem']): void {
    const trouble = problem && {
      key: problem.code,
      message: "the kubelet's device checkpoint cannot be used",
      ended: "the kubelet's device checkpoint could not be used; this problem ended",
      fields: { reason: problem.code },
      detail: problem.message,
      remedy:
        'Check which program writes at this path. Only the kubelet may write there. Or set --podresources.checkpoint to an empty text.',
    };
    this.#changes.update('checkpoint', trouble === undefined ? [] : [trouble]);
  }

  /** Logs each file of a claim that cannot be used, once. */
  claimFiles(problems: readonly ClaimFileProblem[]): void {
    this.#changes.update(
      'claim files',
      problems.slice(0, MOST_FILES).map(({ code, message }) => ({
        key: message,
        message: 'a file of a DRA driver cannot be used; devices of claims that only this file names stay without hardware',
        ended: 'a file of a DRA driver could not be used; this problem ended',
        fields: { reason: code },
        detail: message,
        remedy:
          'Check which program writes this file: only drivers may write there. docs/dra.md says which CDI specs count, docs/threat-model.md has the limits.',
      })),
    );
  }

  #probeTroubles({ family, problems }: FamilyState): Trouble[] {
    return problems.map((problem) => ({
      key: `${problem.code} ${problem.device ?? ''} ${problem.message}`,
      message: 'a probe cannot read everything',
      ended: 'a probe could not read everything; this problem ended',
      fields: { family, code: problem.code, ...defined({ device: problem.device }) },
      detail: problem.message,
      remedy: this.#specs.get(family)?.get(problem.code)?.remedy,
    }));
  }
}

function ambiguous({ allocation }: AllocationState): Trouble {
  const { resource, deviceId, namespace, pod, container } = allocation;
  return {
    key: `${resource} ${deviceId}`,
    message: 'two device families claim the same device id; the allocation is assigned to neither',
    ended: 'two device families claimed the same device id of an allocation; this problem ended',
    fields: { resource, deviceId, namespace, pod, container },
  };
}

/** Several containers can hold the device of a claim, so the holder is no part of the trouble. */
function contradicted({ allocation: { claim }, contradiction }: AllocationState): Trouble[] {
  if (claim === undefined || contradiction === undefined) return [];
  const { driver, pool, device } = claim;
  const { first, other } = contradiction;
  const says = ({ by, devices }: typeof first): string => `${by} says ${devices.join(', ') || 'a device that no probe finds'}`;
  return [
    {
      key: `${driver} ${pool} ${device} ${first.by} ${other.by}`,
      message: 'two sources name different hardware for the device of a claim; the first one counts',
      ended: 'two sources named different hardware for the device of a claim; this problem ended',
      fields: { driver, pool, device },
      detail: `${says(first)}; ${says(other)}`,
      remedy: 'docs/dra.md explains the sources. Remove files of an ended driver, or the rule in join.rules.',
    },
  ];
}

/** Names in one line. */
const MOST_NAMES = 16;

/** Logs which devices each family has, once and after each change, and which resources the kubelet has, once for each. */
export class InventoryLog {
  readonly #logger: Logger;
  /** The logged names, keyed by family. */
  readonly #devices = new Map<string, string>();
  #resources: ReadonlySet<string> = new Set();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  update(snapshot: Snapshot, plugin: PluginStats | undefined): void {
    const read = snapshot.families.filter(({ succeeded }) => succeeded === true).map(({ family }) => family);
    const without = read.filter((family) => this.#family(family, snapshot));
    if (without.length > 0) this.#logger.info('no devices found', { families: without.join(', ') });
    const registered = plugin?.resources.filter((one) => one.registered || this.#resources.has(one.resource)) ?? [];
    for (const { resource, healthy, unhealthy } of registered) {
      if (!this.#resources.has(resource))
        this.#logger.info('the kubelet has a resource', { resource, devices: healthy + unhealthy, unhealthy });
    }
    this.#resources = new Set(registered.map(({ resource }) => resource));
  }

  /** Returns true for a family whose first read found no device. All such families share one line. */
  #family(family: string, { devices }: Snapshot): boolean {
    const present = devices.filter(({ device, missingSinceMs }) => device.family === family && missingSinceMs === undefined);
    const all = present.map(({ key }) => key).join('\u0000');
    const names = present.map(({ device }) => shortName(device));
    const before = this.#devices.get(family);
    if (before === all) return false;
    this.#devices.set(family, all);
    if (before === undefined && names.length === 0) return true;
    this.#logger.info('devices found', {
      family,
      count: names.length,
      ...(names.length === 0 ? {} : { devices: firstOf(names, MOST_NAMES) }),
    });
    return false;
  }
}

/** An id of a GPU is a UUID. Its index is shorter, and is the name that the vendor's tools print. */
const shortName = ({ id, kind, index }: Device): string => (index === undefined ? id : `${kind} ${index}`);

import type { Host } from '../../host/host.ts';
import { BusFunctions } from '../../host/pci/functions.ts';
import { type ExpectedFunction, expectedFunctions, functionsFor } from '../kit/pcie/unshown.ts';
import { boundGpus, DRIVER, type ProcFacts, procFacts, signs } from './hardware.ts';

/** A GPU that the driver does not show, with what the kernel driver tells of it. */
export interface GpuPlace extends ExpectedFunction {
  readonly facts: ProcFacts;
  /** The container of the agent may be without this GPU. */
  readonly isWithheld: boolean;
}

/** The GPUs of the machine, whatever the driver's library or command shows. */
export class MachineGpus {
  readonly #host: Host;
  readonly #functions: BusFunctions;
  readonly #visible: string | undefined;
  /** Whether the driver was told to leave a GPU out, which holds as long as it is loaded. */
  #excluded: ReadonlyMap<string, boolean> = new Map();

  /** `visible`: the variable NVIDIA_VISIBLE_DEVICES of the agent; undefined outside of containers of NVIDIA's runtime. */
  constructor(host: Host, visible: string | undefined) {
    this.#host = host;
    this.#functions = new BusFunctions(host.sys, signs);
    this.#visible = visible;
  }

  /** The GPUs that a working driver should show, by address: without those that it was told to exclude. `nowMs` is monotonic. */
  expected(nowMs: number): readonly ExpectedFunction[] {
    const functions = this.#functions.read(nowMs);
    const isVirtual = new Set(functions.flatMap((each) => (each.isVirtual ? [each.address] : [])));
    const onBus = expectedFunctions(functions, DRIVER);
    // The kernel driver also lists a GPU whose function the machine does not show.
    const listed = boundGpus(this.#host).filter((address) => !isVirtual.has(address) && !onBus.some((each) => each.address === address));
    const all = [...onBus, ...listed.map((address) => ({ address, state: 'bound' as const }))];
    this.#excluded = new Map(all.map(({ address }) => [address, this.#excluded.get(address) ?? procFacts(this.#host, address).isExcluded]));
    return all.filter(({ address }) => this.#excluded.get(address) === false).sort((a, b) => (a.address < b.address ? -1 : 1));
  }

  /** Adds what the kernel driver tells. */
  placesOf(functions: readonly ExpectedFunction[]): readonly GpuPlace[] {
    return functions.map((each) => {
      const facts = procFacts(this.#host, each.address);
      return { ...each, facts, isWithheld: this.#isWithheld(facts) };
    });
  }

  /** The GPUs that the driver would have if it were loaded. */
  withoutDriver(nowMs: number): readonly ExpectedFunction[] {
    return functionsFor(this.#functions.read(nowMs), DRIVER).map(({ address, driver }) => ({
      address,
      state: driver === undefined ? 'unbound' : 'bound',
    }));
  }

  /** The runtime gives a container the nodes of the GPUs that its variable names. "void" is also the value when it uses CDI. */
  #isWithheld({ uuid, minor }: ProcFacts): boolean {
    const visible = this.#visible;
    if (visible === undefined || visible === 'all' || (uuid !== undefined && visible.includes(uuid))) return false;
    return minor === undefined || !this.#host.dev.exists(`nvidia${minor}`);
  }
}

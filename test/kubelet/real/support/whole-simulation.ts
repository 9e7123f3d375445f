import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { credentials } from '@grpc/grpc-js';
import {
  type AllocatableResourcesResponse,
  type ContainerDevices,
  type ListPodResourcesResponse,
  PodResourcesListerClient,
} from '../../../../src/generated/podresources/v1/api.ts';
import { type Clock, systemClock } from '../../../../src/host/clock.ts';
import { admitThroughPlugins } from '../../../../src/sim/kubelet/admission.ts';
import { AdmissionError } from '../../../../src/sim/kubelet/allocations.ts';
import type { SimulatedDevice } from '../../../../src/sim/kubelet/pods.ts';
import { admitAgain } from '../../../support/kubelet/admit-again.ts';
import { TestDeviceManager } from '../../../support/kubelet/device-manager.ts';
import { TestKubelet } from '../../../support/kubelet/kubelet.ts';
import { SimulatedPluginWatcher } from '../../../support/kubelet/plugin-watcher.ts';
import { ALL_APIS, type ServedApis } from '../../../support/kubelet/served-apis.ts';
import type { TopologyPolicy, TopologyScope } from '../../../support/kubelet/topology-hints.ts';
import type { AnyKubelet } from './any-kubelet.ts';
import type { Release } from './build.ts';
import type { Admission, Given, Refused, StartSettings, ToldCapacity, ToldDevices, ToldPod, WantedPod } from './exchanged.ts';

type Named = Pick<WantedPod, 'namespace' | 'name'>;

export interface SimulationSettings {
  readonly policy?: TopologyPolicy;
  readonly scope?: TopologyScope;
  readonly onlyV1alpha1?: boolean;
  readonly release?: Release;
}

/** The parts of the simulated kubelet put together, under the same handles as the real one. */
export class WholeSimulation implements AnyKubelet {
  readonly #directory = mkdtempSync(join(tmpdir(), 'simulated-'));
  readonly pluginDirectory = join(this.#directory, 'device-plugins');
  readonly registry = join(this.#directory, 'plugins_registry');
  readonly #kubelet: TestKubelet;
  readonly #manager: TestDeviceManager;
  readonly #watcher: SimulatedPluginWatcher;

  readonly #apis: ServedApis;
  /** How much later it is for the simulation. */
  #aheadMs = 0;

  constructor(settings: SimulationSettings = {}) {
    const { policy: topologyPolicy = 'none', scope: topologyScope = 'container', onlyV1alpha1 = false, release = '1.36' } = settings;
    for (const folder of [this.pluginDirectory, this.registry]) mkdirSync(folder, { recursive: true });
    this.#apis = { ...ALL_APIS, v1: !onlyV1alpha1 };
    const clock: Clock = { ...systemClock, monotonic: () => systemClock.monotonic() + this.#aheadMs };
    const directory = this.#directory;
    this.#kubelet = new TestKubelet({ directory, clock, admitAgain: (pod) => admitAgain(this.#manager, pod) });
    const { checkpoint } = this.#kubelet;
    const onChange = (): void => this.#kubelet.setStock(this.#manager.stock());
    this.#manager = new TestDeviceManager({
      directory: this.pluginDirectory,
      release,
      clock,
      checkpoint,
      activePods: () => this.#kubelet.freeEnded(),
      topologyPolicy,
      topologyScope,
      onChange,
    });
    this.#watcher = new SimulatedPluginWatcher(this.registry, this.#manager);
  }

  get podResourcesSocket(): string {
    return this.#kubelet.podResourcesSocket;
  }

  async start({ podsAfterMs = 0 }: StartSettings = {}): Promise<void> {
    await this.#manager.start();
    this.#watcher.start();
    await this.#kubelet.restart({ emptyForMs: podsAfterMs, apis: this.#apis });
  }

  async end(): Promise<void> {
    this.#watcher.stop();
    await this.#manager.stop();
    await this.#kubelet.stop();
  }

  async close(): Promise<void> {
    await this.end();
    rmSync(this.#directory, { recursive: true, force: true });
  }

  async deliver(): Promise<readonly Refused[]> {
    return (await this.#kubelet.deliverPods()).map(({ pod, error }) => refusalOf(pod, error));
  }

  async takeDown({ namespace, name }: Named): Promise<void> {
    this.#kubelet.takeDown(namespace, name);
  }

  async startAgain({ namespace, name }: Named, container: string): Promise<Given> {
    const pod = this.#kubelet.pods().find((each) => each.namespace === namespace && each.name === name);
    return this.#given(pod?.containers.find((each) => each.name === container)?.devices ?? []);
  }

  /** The clock goes forward for the whole of it. */
  async age(_resource: string, forMs: number): Promise<void> {
    this.#aheadMs += forMs;
  }

  async admit({ namespace, name, uid = name, containers }: WantedPod): Promise<Admission> {
    const wanted = containers.map(({ name: container, kind = 'app', wants = {} }) => ({
      name: container,
      kind,
      wants: Object.entries(wants).map(([resource, count]) => ({ resource, count })),
    }));
    try {
      const admitted = await admitThroughPlugins(this.#kubelet, this.#manager, { namespace, name, uid, containers: wanted });
      const given: Record<string, Given> = {};
      for (const container of admitted.containers) given[container.name] = await this.#given(container.devices ?? []);
      return { uid, given };
    } catch (error) {
      if (!(error instanceof AdmissionError)) throw error;
      return { uid, refused: refusalOf({ namespace, name }, error) };
    }
  }

  async remove({ namespace, name }: Named): Promise<void> {
    this.#kubelet.removePod(namespace, name);
  }

  async finish({ namespace, name }: Named): Promise<void> {
    this.#kubelet.endPod(namespace, name);
  }

  async status(pod: Named): Promise<Record<string, Record<string, Record<string, string>>>> {
    return this.#manager.status(this.#uidOf(pod));
  }

  async capacity(): Promise<ToldCapacity> {
    const told = { capacity: {} as Record<string, number>, allocatable: {} as Record<string, number>, gone: [] as string[] };
    for (const resource of this.#manager.resources()) {
      const amounts = this.#manager.capacity(resource);
      if (amounts === undefined) told.gone.push(resource);
      else [told.capacity[resource], told.allocatable[resource]] = [amounts.capacity, amounts.allocatable];
    }
    return told;
  }

  async list(): Promise<readonly ToldPod[]> {
    const { podResources } = await this.#ask<ListPodResourcesResponse>((client, done) => client.list({}, done));
    return podResources.map(({ name, namespace, containers }) => ({
      name,
      namespace,
      containers: containers.map((container) => ({ name: container.name, devices: container.devices.map(told) })),
    }));
  }

  async allocatable(resource: string): Promise<readonly string[]> {
    const { devices } = await this.#ask<AllocatableResourcesResponse>((client, done) => client.getAllocatableResources({}, done));
    return [...new Set(devices.filter(({ resourceName }) => resourceName === resource).flatMap(({ deviceIds }) => deviceIds))].sort();
  }

  checkpointText(): string {
    return readFileSync(this.#kubelet.checkpoint, 'utf8');
  }

  async #given(held: readonly SimulatedDevice[]): Promise<Given> {
    const devices: Record<string, string[]> = {};
    for (const { resource, id } of held) devices[resource] = [...(devices[resource] ?? []), id].sort();
    return { devices, ...(await this.#startProblem(devices)) };
  }

  async #startProblem(devices: Readonly<Record<string, readonly string[]>>): Promise<{ error?: string }> {
    try {
      for (const [resource, deviceIds] of Object.entries(devices)) await this.#manager.preStart({ deviceIds }, resource);
      return {};
    } catch (error) {
      return { error: (error as Error).message };
    }
  }

  #uidOf({ namespace, name }: Named): string {
    return this.#kubelet.pods().find((pod) => pod.namespace === namespace && pod.name === name)?.uid ?? '';
  }

  #ask<T>(call: (client: PodResourcesListerClient, done: (error: Error | null, answer: T) => void) => unknown): Promise<T> {
    const client = new PodResourcesListerClient(`unix:${this.podResourcesSocket}`, credentials.createInsecure());
    return new Promise<T>((resolve, reject) => {
      call(client, (error, answer) => (error === null ? resolve(answer) : reject(error)));
    }).finally(() => client.close());
  }
}

function refusalOf({ namespace, name }: Named, error: Error): Refused {
  return { pod: `${namespace}/${name}`, reason: error instanceof AdmissionError ? error.reason : '', message: error.message };
}

/** In the proto's own JSON, defaults left out. */
function told({ resourceName, deviceIds, topology }: ContainerDevices): ToldDevices {
  const nodes = topology?.nodes.map(({ ID }) => (ID === 0n ? {} : { ID: `${ID}` }));
  return { resource_name: resourceName, device_ids: deviceIds, ...(nodes === undefined ? {} : { topology: { nodes } }) };
}

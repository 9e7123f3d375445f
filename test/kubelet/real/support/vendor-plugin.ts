import { mkdirSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { credentials, Server, ServerCredentials, type ServerWritableStream } from '@grpc/grpc-js';
import {
  type ContainerAllocateResponse,
  type Device,
  type DevicePluginServer,
  DevicePluginService,
  type ListAndWatchResponse,
  RegistrationClient,
} from '../../../../src/generated/deviceplugin/v1beta1/api.ts';
import { type RegistrationServer, RegistrationService } from '../../../../src/generated/pluginregistration/v1/api.ts';

/** NUMA nodes of a device: absent is no topology, empty is a topology without nodes. */
export interface VendorDevice {
  readonly id: string;
  readonly nodes?: readonly number[];
  readonly healthy?: boolean;
}

export interface VendorSettings {
  readonly resource: string;
  readonly devices: readonly VendorDevice[];
  /** What it answers to GetPreferredAllocation; absent: it does not offer that. Throw to fail the call. */
  readonly prefer?: (available: readonly string[], mustInclude: readonly string[], size: number) => readonly string[];
  /** What it answers to Allocate; undefined for no answer at all. Throw to fail the call. */
  readonly allocate?: (ids: readonly string[]) => Partial<ContainerAllocateResponse> | undefined;
  readonly preStart?: (ids: readonly string[]) => void;
  readonly version?: string;
  /** Name of its socket; made of the resource when absent. */
  readonly socket?: string;
  /** What it says it is to the plugin watcher. Default `DevicePlugin`. */
  readonly type?: string;
}

const EMPTY: ContainerAllocateResponse = { envs: {}, mounts: [], devices: [], annotations: {}, cdiDevices: [] };

/** A device plugin of somebody else: says what it is told to say, and keeps count of what it was asked. */
export class VendorPlugin {
  readonly asked: { readonly method: string; readonly ids: readonly string[]; readonly mustInclude?: readonly string[] }[] = [];
  /** When the plugin watcher asked what it is. */
  readonly infoAtMs: number[] = [];
  /** What the plugin watcher told it: `registered`, or what is wrong. */
  readonly notified: string[] = [];
  readonly socket: string;
  readonly #settings: VendorSettings;
  readonly #server = new Server();
  readonly #streams = new Set<ServerWritableStream<object, ListAndWatchResponse>>();
  #devices: readonly VendorDevice[];

  constructor(directory: string, settings: VendorSettings) {
    this.socket = join(directory, settings.socket ?? `${settings.resource.replaceAll('/', '_')}.sock`);
    this.#settings = settings;
    this.#devices = settings.devices;
    this.#server.addService(DevicePluginService, this.#methods());
    this.#server.addService(RegistrationService, this.#watcherMethods());
  }

  async serve(): Promise<void> {
    mkdirSync(dirname(this.socket), { recursive: true });
    rmSync(this.socket, { force: true });
    await new Promise<void>((resolve, reject) => {
      this.#server.bindAsync(`unix:${this.socket}`, ServerCredentials.createInsecure(), (error) => (error ? reject(error) : resolve()));
    });
  }

  /** Fails with what the kubelet says. */
  register(): Promise<void> {
    const client = new RegistrationClient(`unix:${join(dirname(this.socket), 'kubelet.sock')}`, credentials.createInsecure());
    const { resource, version = 'v1beta1' } = this.#settings;
    const request = { version, endpoint: basename(this.socket), resourceName: resource, options: undefined };
    return new Promise((resolve, reject) => {
      client.register(request, (error) => {
        client.close();
        if (error === null) resolve();
        else reject(new Error(error.details));
      });
    });
  }

  async start(): Promise<this> {
    await this.serve();
    await this.register();
    return this;
  }

  /** Another list, to everybody who watches. */
  tell(devices: readonly VendorDevice[]): void {
    this.#devices = devices;
    for (const stream of this.#streams) stream.write({ devices: devices.map(told) });
  }

  /** How many watch its list. */
  get watchers(): number {
    return this.#streams.size;
  }

  close(): void {
    this.#server.forceShutdown();
    rmSync(this.socket, { force: true });
  }

  #watcherMethods(): RegistrationServer {
    const { resource, type = 'DevicePlugin', version = 'v1beta1' } = this.#settings;
    return {
      getInfo: (_, callback) => {
        this.infoAtMs.push(performance.now());
        callback(null, { type, name: resource, endpoint: this.socket, supportedVersions: [version] });
      },
      notifyRegistrationStatus: ({ request: { pluginRegistered, error } }, callback) => {
        this.notified.push(pluginRegistered ? 'registered' : error);
        callback(null, {});
      },
    };
  }

  #methods(): DevicePluginServer {
    const { prefer, allocate = () => ({}), preStart } = this.#settings;
    return {
      getDevicePluginOptions: (_, callback) => {
        callback(null, { preStartRequired: preStart !== undefined, getPreferredAllocationAvailable: prefer !== undefined });
      },
      listAndWatch: (call) => {
        this.#streams.add(call);
        call.on('close', () => this.#streams.delete(call));
        call.on('cancelled', () => this.#streams.delete(call));
        call.write({ devices: this.#devices.map(told) });
      },
      getPreferredAllocation: ({ request }, callback) => {
        const containerResponses = request.containerRequests.map(({ availableDeviceIDs, mustIncludeDeviceIDs, allocationSize }) => {
          this.asked.push({ method: 'prefer', ids: [...availableDeviceIDs].sort(), mustInclude: [...mustIncludeDeviceIDs].sort() });
          return () => ({ deviceIDs: [...(prefer?.(availableDeviceIDs, mustIncludeDeviceIDs, allocationSize) ?? [])] });
        });
        answered(callback, () => ({ containerResponses: containerResponses.map((answer) => answer()) }));
      },
      allocate: ({ request }, callback) => {
        answered(callback, () => {
          const answers = request.containerRequests.map(({ devicesIds }) => {
            this.asked.push({ method: 'allocate', ids: [...devicesIds].sort() });
            return allocate(devicesIds);
          });
          return { containerResponses: answers.filter((answer) => answer !== undefined).map((answer) => ({ ...EMPTY, ...answer })) };
        });
      },
      preStartContainer: ({ request }, callback) => {
        answered(callback, () => {
          this.asked.push({ method: 'start', ids: [...request.devicesIds].sort() });
          preStart?.(request.devicesIds);
          return {};
        });
      },
    };
  }
}

function answered<A>(callback: (error: { details: string; code: number } | null, answer?: A) => void, answer: () => A): void {
  try {
    callback(null, answer());
  } catch (error) {
    callback({ code: 2, details: (error as Error).message });
  }
}

function told({ id, nodes, healthy = true }: VendorDevice): Device {
  const topology = nodes === undefined ? undefined : { nodes: nodes.map((node) => ({ ID: BigInt(node) })) };
  return { ID: id, health: healthy ? 'Healthy' : 'Unhealthy', topology };
}

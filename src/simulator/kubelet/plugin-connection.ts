import { type ClientReadableStream, credentials, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import {
  type AllocateResponse,
  type Device,
  DevicePluginClient,
  type DevicePluginOptions,
  type ListAndWatchResponse,
  type PreferredAllocationResponse,
} from '../../generated/deviceplugin/v1beta1/api.ts';

/** The kubelet dials a plugin's socket for this long, inside of `Register`. */
const DIAL_MS = 10_000;
const PRE_START_MS = 30_000;

export interface StreamEvents {
  list(devices: readonly Device[]): void;
  /** For whatever reason, and not after `close`. */
  ended(): void;
}

/** The kubelet's side of one plugin: dialled back, asked for its options, its list followed. */
export class PluginConnection {
  readonly socket: string;
  readonly #client: DevicePluginClient;
  readonly #streams = new Set<ClientReadableStream<ListAndWatchResponse>>();
  #options: DevicePluginOptions = { preStartRequired: false, getPreferredAllocationAvailable: false };
  #isClosed = false;

  /** `authority`: kubelets up to 1.25 send the socket's path, later ones `localhost`. */
  constructor(socket: string, authority: string) {
    this.socket = socket;
    this.#client = new DevicePluginClient(`unix:${socket}`, credentials.createInsecure(), {
      'grpc.default_authority': authority,
      'grpc.use_local_subchannel_pool': 1,
      'grpc.enable_channelz': 0,
      'grpc.enable_retries': 0,
    });
  }

  get options(): DevicePluginOptions {
    return this.#options;
  }

  async dial(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#client.waitForReady(Date.now() + DIAL_MS, (error) => {
        if (error === undefined) resolve();
        else reject(new Error(`failed to dial device plugin: ${error.message}`));
      });
    });
    this.#options = await unary<DevicePluginOptions>((callback) => this.#client.getDevicePluginOptions({}, callback)).catch((error) => {
      throw new Error(`failed to get device plugin options: ${(error as Error).message}`);
    });
  }

  /** Several may be open at once, as after a double registration. */
  follow(events: StreamEvents): ClientReadableStream<ListAndWatchResponse> {
    const stream = this.#client.listAndWatch({});
    this.#streams.add(stream);
    const ended = (): void => {
      if (!this.#streams.delete(stream) || this.#isClosed) return;
      events.ended();
    };
    stream.on('data', ({ devices }: ListAndWatchResponse) => events.list(devices));
    stream.on('error', ended);
    stream.on('end', ended);
    return stream;
  }

  /** Empty when the plugin does not offer to say. */
  async prefer(available: readonly string[], mustInclude: readonly string[], size: number): Promise<readonly string[]> {
    if (!this.#options.getPreferredAllocationAvailable) return [];
    const request = { availableDeviceIDs: [...available], mustIncludeDeviceIDs: [...mustInclude], allocationSize: size };
    const answer = await unary<PreferredAllocationResponse>((callback) =>
      this.#client.getPreferredAllocation({ containerRequests: [request] }, callback),
    ).catch((error) => {
      throw new Error(`device plugin GetPreferredAllocation rpc failed with err: ${(error as Error).message}`);
    });
    return answer.containerResponses[0]?.deviceIDs ?? [];
  }

  /** No deadline, as the kubelet has none. */
  async allocate(ids: readonly string[]): Promise<AllocateResponse> {
    return await unary<AllocateResponse>((callback) => this.#client.allocate({ containerRequests: [{ devicesIds: [...ids] }] }, callback));
  }

  async preStart(ids: readonly string[]): Promise<void> {
    if (!this.#options.preStartRequired) return;
    await unary((callback) =>
      this.#client.preStartContainer({ devicesIds: [...ids] }, new Metadata(), { deadline: Date.now() + PRE_START_MS }, callback),
    ).catch((error) => {
      throw new Error(`device plugin PreStartContainer rpc failed with err: ${(error as Error).message}`);
    });
  }

  close(): void {
    this.#isClosed = true;
    for (const stream of this.#streams) stream.cancel();
    this.#streams.clear();
    this.#client.close();
  }
}

/** Fails with the text that Go's gRPC makes of a status. */
function unary<A>(call: (callback: (error: ServiceError | null, answer: A) => void) => unknown): Promise<A> {
  return new Promise((resolve, reject) => {
    call((error, answer) => {
      if (error === null) resolve(answer);
      else reject(new Error(`rpc error: code = ${codeName(error.code)} desc = ${error.details}`));
    });
  });
}

/** `FailedPrecondition` for FAILED_PRECONDITION. */
function codeName(code: number): string {
  const words = (status[code] ?? 'UNKNOWN').toLowerCase().split('_');
  return words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
}

import { type ClientReadableStream, credentials, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import {
  type AllocateResponse,
  type ContainerAllocateResponse,
  type Device,
  DevicePluginClient,
  type DevicePluginOptions,
  type ListAndWatchResponse,
  type PreferredAllocationResponse,
} from '../../generated/deviceplugin/v1beta1/api.ts';

/** How long the kubelet dials a plugin's socket within `Register`. */
const DIAL_MS = 10_000;
const PRE_START_MS = 30_000;

export interface StreamEvents {
  list(devices: readonly Device[]): void;
  /** Called when the stream ends for any reason, but not after `close`. */
  ended(): void;
}

/** The kubelet's connection to one plugin: dials it, reads its options and follows its list. */
export class PluginConnection {
  readonly socket: string;
  readonly #client: DevicePluginClient;
  #stream: ClientReadableStream<ListAndWatchResponse> | undefined;
  #options: DevicePluginOptions = { preStartRequired: false, getPreferredAllocationAvailable: false };
  #isClosed = false;

  /** `authority`: kubelets up to 1.25 send the socket's path, later ones `localhost`. */
  constructor(socket: string, authority = 'localhost') {
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

  follow(events: StreamEvents): void {
    const stream = this.#client.listAndWatch({});
    this.#stream = stream;
    const ended = (): void => {
      if (this.#stream === undefined || this.#isClosed) return;
      this.#stream = undefined;
      events.ended();
    };
    stream.on('data', ({ devices }: ListAndWatchResponse) => events.list(devices));
    stream.on('error', ended);
    stream.on('end', ended);
  }

  /** Asks for preferred devices. Returns an empty list when the plugin does not offer this. */
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

  /** It has no deadline, as in the kubelet. Returns undefined when the plugin sends no answer for the container. */
  async allocate(ids: readonly string[]): Promise<ContainerAllocateResponse | undefined> {
    const request = { containerRequests: [{ devicesIds: [...ids] }] };
    return (await unary<AllocateResponse>((callback) => this.#client.allocate(request, callback))).containerResponses[0];
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
    this.cancelStream();
    this.#client.close();
  }

  protected cancelStream(): void {
    this.#stream?.cancel();
  }
}

/** Fails with the text that Go's gRPC library produces for a status. */
function unary<A>(call: (callback: (error: ServiceError | null, answer: A) => void) => unknown): Promise<A> {
  return new Promise((resolve, reject) => {
    call((error, answer) => {
      if (error === null) resolve(answer);
      else reject(new Error(`rpc error: code = ${codeName(error.code)} desc = ${error.details}`));
    });
  });
}

/** Converts FAILED_PRECONDITION to `FailedPrecondition`. */
function codeName(code: number): string {
  const words = (status[code] ?? 'UNKNOWN').toLowerCase().split('_');
  return words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
}

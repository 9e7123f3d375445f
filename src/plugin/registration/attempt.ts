import { basename } from 'node:path';
import { status } from '@grpc/grpc-js';
import { RegistrationService } from '../../generated/deviceplugin/v1beta1/api.ts';
import type { RegistrationServer } from '../../generated/pluginregistration/v1/api.ts';
import type { Clock } from '../../host/clock.ts';
import { socketAt, watchSocket } from '../../host/fs/socket-file.ts';
import { type CallError, GrpcConnection } from '../../host/grpc-connection.ts';
import type { PluginService } from '../service.ts';
import { type PluginServer, servePlugin } from './plugin-server.ts';

export interface AttemptDependencies {
  readonly resource: string;
  readonly service: PluginService;
  readonly clock: Clock;
  /** Socket path on which this attempt serves. It must never have been used before. */
  readonly ownSocket: string;
  /** Absent when the kubelet's plugin watcher finds `ownSocket`. */
  readonly kubeletSocket?: string;
  readonly streamTimeoutMs: number;
  readonly registerTimeoutMs: number;
  /** Timeout for the plugin watcher's first call; after it the attempt ends, and the next one creates a new socket. */
  readonly contactTimeoutMs: number;
  /** Called when the first `ListAndWatch` stream opens. */
  onStream(): void;
  /** Called when the wait takes longer than usual. The attempt continues. */
  onWaiting(end: AttemptEnd): void;
}

/**
 * One registration attempt, from the creation of the socket to the end of the stream. `run` closes everything before it returns, so
 * that two attempts never overlap: a kubelet up to 1.36 treats the end of the old stream as the end of the new stream.
 */
export class Attempt {
  readonly #parts: AttemptDependencies;
  readonly #timers = new Set<() => void>();
  #finish: (end: AttemptEnd) => void = () => {};
  readonly #over = new Promise<AttemptEnd>((resolve) => {
    this.#finish = resolve;
  });
  #connection: GrpcConnection | undefined;
  #hasStream = false;
  #kubelet: string | undefined;

  constructor(parts: AttemptDependencies) {
    this.#parts = parts;
  }

  /** Identity of the kubelet socket that this attempt uses. */
  get kubelet(): string | undefined {
    return this.#kubelet;
  }

  get ownSocket(): string {
    return this.#parts.ownSocket;
  }

  /** Ends the attempt from outside. Only the first reason counts. */
  end(end: AttemptEnd): void {
    this.#finish(end);
  }

  async run(): Promise<AttemptEnd> {
    const { service, clock, ownSocket, kubeletSocket } = this.#parts;
    if (kubeletSocket !== undefined) {
      const state = socketAt(kubeletSocket);
      if (state.kind === 'not-a-socket') return { reason: 'not-a-socket', detail: `${kubeletSocket} is a ${state.what}` };
      if (state.kind !== 'socket') return { reason: 'kubelet-socket-missing', detail: kubeletSocket };
      this.#kubelet = state.identity;
    }
    service.listen({ opened: () => this.#streamOpened(), ended: () => this.end({ reason: 'stream-ended' }) });
    const watcher = kubeletSocket === undefined ? this.#watcherMethods() : undefined;
    let server: PluginServer;
    try {
      server = await servePlugin(ownSocket, service, clock, watcher);
    } catch (error) {
      return { reason: 'serve-failed', detail: error instanceof Error ? error.message : String(error) };
    }
    return await this.#serve(server);
  }

  async #serve(server: PluginServer): Promise<AttemptEnd> {
    const { clock, kubeletSocket } = this.#parts;
    const born = socketAt(server.path);
    const lost = (): void => {
      const now = socketAt(server.path);
      const same = now.kind === 'socket' && born.kind === 'socket' && now.identity === born.identity;
      if (!same) this.end({ reason: 'socket-gone', detail: server.path });
    };
    const watch = watchSocket(server.path, lost, clock);
    lost();
    if (kubeletSocket === undefined) this.#awaitContact();
    else void this.#register(kubeletSocket, server.path);
    const end = await this.#over;
    watch.close();
    this.#connection?.close();
    for (const cancel of this.#timers) cancel();
    this.#timers.clear();
    if (end.reason === 'stopped') await server.close();
    else server.cut();
    this.#parts.service.forget();
    return end;
  }

  async #register(kubeletSocket: string, ownSocket: string): Promise<void> {
    const { resource, service, registerTimeoutMs: timeoutMs } = this.#parts;
    const request = { version: 'v1beta1', endpoint: basename(ownSocket), resourceName: resource, options: service.options() };
    this.#connection = new GrpcConnection(kubeletSocket);
    const { error } = await this.#connection.call(RegistrationService.register, request, timeoutMs);
    this.#connection.close();
    if (error === undefined) this.#awaitStream();
    else this.end(endOf(error, timeoutMs));
  }

  #streamOpened(): void {
    if (this.#hasStream) return;
    this.#hasStream = true;
    this.#parts.onStream();
  }

  #awaitStream(): void {
    const { streamTimeoutMs } = this.#parts;
    this.#after(streamTimeoutMs, () => {
      if (!this.#hasStream) this.end({ reason: 'no-stream', detail: `within ${streamTimeoutMs / 1_000} s` });
    });
  }

  #watcherMethods(): RegistrationServer {
    const { resource } = this.#parts;
    return {
      getInfo: (_, callback) => {
        callback(null, { type: 'DevicePlugin', name: resource, endpoint: this.#parts.ownSocket, supportedVersions: ['v1beta1'] });
      },
      notifyRegistrationStatus: ({ request: { pluginRegistered, error } }, callback) => {
        callback(null, {});
        if (pluginRegistered) this.#awaitStream();
        else this.end({ reason: 'refused', detail: error });
      },
    };
  }

  /** The watcher calls at an unknown time, so the socket stays. After the long timeout the attempt ends, in case the watcher missed it. */
  #awaitContact(): void {
    const { streamTimeoutMs, contactTimeoutMs } = this.#parts;
    this.#after(streamTimeoutMs, () => {
      if (!this.#hasStream) this.#parts.onWaiting({ reason: 'no-contact', detail: `within ${streamTimeoutMs / 1_000} s` });
    });
    this.#after(Math.max(contactTimeoutMs, streamTimeoutMs), () => {
      if (!this.#hasStream) this.end({ reason: 'no-contact' });
    });
  }

  #after(delayMs: number, run: () => void): void {
    this.#timers.add(this.#parts.clock.after(delayMs, run));
  }
}

/** The detail of a refusal is the kubelet's own message. */
function endOf({ code, details }: CallError, timeoutMs: number): AttemptEnd {
  if (code === status.DEADLINE_EXCEEDED) return { reason: 'timeout', detail: `no answer within ${timeoutMs / 1_000} s` };
  const isRefusal = code !== status.UNAVAILABLE && code !== status.INTERNAL && code !== status.CANCELLED;
  return { reason: isRefusal ? 'refused' : 'unreachable', detail: details };
}

/** Why a resource is not registered. Closed set, used as values of the label `result` and of the log field `reason`. */
export type FailureReason = keyof typeof REMEDIES;

/** What the operator should check, keyed by reason. */
export const REMEDIES = {
  'kubelet-socket-missing': 'Is the kubelet running, and is its device-plugins directory mounted into this container?',
  'not-a-socket': 'The path of the kubelet socket holds another kind of file; remove it and restart the kubelet.',
  'serve-failed': 'Is the directory mounted writable, and may this process create sockets in it?',
  unreachable: 'No process answers at the socket; the kubelet is down or starting.',
  timeout: 'The kubelet accepted the call but does not answer; read its log.',
  refused: 'The kubelet refused the resource, for the reason it gave. Kubelets before 1.26 cannot talk to this server.',
  'no-contact': 'The plugin watcher has not called the socket; does the kubelet watch this directory?',
  'no-stream': 'The kubelet accepted the registration but did not ask for the devices; read its log.',
  'stream-ended': 'The kubelet restarted, or another plugin offers the same resource.',
  'socket-gone': 'Another process removed the socket; a starting kubelet removes all sockets.',
  dropped:
    'The kubelet reads the device list but reports none of it as allocatable: another plugin of the same resource, perhaps another agent, has ended, or --podresources.socket belongs to another kubelet.',
  superseded:
    'Another plugin of the same resource registered later, and the kubelet offers its devices and asks it. The agent registers again; remove one of the two.',
  'kubelet-restarted': 'No action needed: the agent registers the resource with the new kubelet.',
} as const;

/** How one attempt to be registered ended. */
export interface AttemptEnd {
  readonly reason: FailureReason | 'stopped';
  readonly detail?: string;
}

/** True when no kubelet was called. A short retry interval is then safe, because it cannot overload a kubelet. */
export function isAbsence(reason: AttemptEnd['reason']): boolean {
  return reason === 'kubelet-socket-missing' || reason === 'not-a-socket';
}

import type { Device } from '../../generated/deviceplugin/v1beta1/api.ts';
import { resourceNameProblem } from '../../model/plugin-resource.ts';
import { PluginConnection } from './plugin-connection.ts';
import type { RegistrationFault } from './registration-fault.ts';

export interface PluginConnectionsParts {
  /** Up to 1.36 the end of any stream of a resource takes its newest plugin away; from 1.37 on only the plugin's own. */
  readonly release: '1.36' | '1.37';
  faultOf(resource: string): RegistrationFault | undefined;
  listed(resource: string, devices: readonly Device[]): void;
  /** Its plugin is gone. */
  stopped(resource: string): void;
}

/** The plugins that a device manager has dialled back: one that counts for each resource, and what is still open of those before it. */
export class PluginConnections {
  readonly #parts: PluginConnectionsParts;
  readonly #newest = new Map<string, PluginConnection>();
  readonly #open = new Set<PluginConnection>();

  constructor(parts: PluginConnectionsParts) {
    this.#parts = parts;
  }

  get(resource: string): PluginConnection | undefined {
    return this.#newest.get(resource);
  }

  /** Fails with what a plugin is told. Its list is followed a moment later. */
  async connect(resource: string, socket: string): Promise<void> {
    const problem = resourceNameProblem(resource);
    if (problem !== undefined) throw new Error(`the ResourceName "${resource}" is invalid`);
    const connection = new PluginConnection(socket, this.#parts.faultOf(resource)?.kind === 'old-authority' ? socket : 'localhost');
    this.#open.add(connection);
    try {
      await connection.dial();
    } catch (error) {
      this.#close(connection);
      throw error;
    }
    this.#newest.set(resource, connection);
    setImmediate(() => this.#follow(resource, connection));
  }

  disconnect(resource: string): void {
    const connection = this.#newest.get(resource);
    if (connection === undefined) return;
    this.#newest.delete(resource);
    this.#close(connection);
    this.#parts.stopped(resource);
  }

  /** All at once, and nobody is told. */
  closeAll(): void {
    for (const connection of this.#open) connection.close();
    this.#open.clear();
    this.#newest.clear();
  }

  #follow(resource: string, connection: PluginConnection): void {
    if (!this.#open.has(connection)) return;
    const stream = connection.follow({
      list: (devices) => this.#parts.listed(resource, devices),
      ended: () => this.#streamEnded(resource, connection),
    });
    if (this.#parts.faultOf(resource)?.kind === 'cut-stream') stream.once('data', () => stream.cancel());
  }

  #streamEnded(resource: string, connection: PluginConnection): void {
    const takesNewest = this.#parts.release === '1.37' ? this.#newest.get(resource)?.socket === connection.socket : true;
    if (takesNewest) this.disconnect(resource);
    this.#close(connection);
  }

  #close(connection: PluginConnection): void {
    this.#open.delete(connection);
    connection.close();
  }
}

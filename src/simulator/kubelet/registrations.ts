import { join } from 'node:path';
import type { RegisterRequest } from '../../generated/deviceplugin/v1beta1/api.ts';
import type { Clock } from '../../host/clock.ts';
import type { RegistrationFault } from './registration-fault.ts';

export interface RegistrationsParts {
  /** Of the plugins' sockets. */
  readonly directory: string;
  readonly clock: Clock;
  connect(resource: string, socket: string): Promise<void>;
}

/** What a device manager does when a plugin registers, and what it does wrong where a test wants that. */
export class Registrations {
  readonly #parts: RegistrationsParts;
  readonly #faults = new Map<string, RegistrationFault>();
  /** Calls of `Register` that arrived so far, refused ones too. */
  count = 0;

  constructor(parts: RegistrationsParts) {
    this.#parts = parts;
  }

  /** For one resource, or with an empty name for all that have no fault of their own. */
  setFault(fault: RegistrationFault | undefined, resource: string): void {
    if (fault === undefined) this.#faults.delete(resource);
    else this.#faults.set(resource, fault);
  }

  faultOf(resource: string): RegistrationFault | undefined {
    return this.#faults.get(resource) ?? this.#faults.get('');
  }

  /** Fails with what the plugin is told. */
  async register({ version, resourceName, endpoint }: RegisterRequest): Promise<void> {
    this.count += 1;
    const { directory, clock, connect } = this.#parts;
    const fault = this.faultOf(resourceName);
    if (fault?.kind === 'hang') return new Promise(() => {});
    if (fault?.kind === 'slow') await new Promise<void>((resolve) => clock.after(fault.delayMs, resolve));
    if (fault?.kind === 'refuse') throw new Error(fault.message);
    if (version !== 'v1beta1')
      throw new Error(`requested API version "${version}" is not supported by kubelet. Supported version is ["v1beta1"]`);
    if (fault?.kind === 'no-dial-back') return;
    await connect(resourceName, join(directory, endpoint));
    if (fault?.kind === 'double') await connect(resourceName, join(directory, endpoint));
  }
}

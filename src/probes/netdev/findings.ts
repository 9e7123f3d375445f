import type { Finding } from '../../model/health.ts';
import { conditions } from './conditions.ts';
import type { PortSample } from './port.ts';
import type { VirtualFunction } from './virtual-function.ts';

/** Findings of the ports of a physical function, or of a function without SR-IOV. Pure. */
export function portFindings(ports: readonly PortSample[]): Finding[] {
  return ports.flatMap((sample) => [
    portDown(sample),
    ...counted(conditions.LinkFlapping.type, sample, 'carrier losses', sample.carrierLosses),
    ...counted(conditions.TransmitTimeout.type, sample, 'transmit timeouts', sample.transmitTimeouts),
    ...counted(conditions.ReceiveErrors.type, sample, 'frames with a wrong checksum', sample.crcErrors),
  ]);
}

/** A port that was never up is not cabled, which is no fault. The health engine remembers whether the port was up since boot. */
function portDown({ port, interfaceName, isUp, isEnabled }: PortSample): Finding {
  const base = { type: conditions.PortDown.type, instance: port };
  if (isUp === undefined)
    return {
      ...base,
      status: 'unknown',
      reason: 'LinkUnreadable',
      message: `port ${port}: the carrier of ${interfaceName} cannot be read`,
    };
  if (isUp) return { ...base, reason: 'LinkUp', message: `port ${port}: ${interfaceName} has a link`, level: true };
  if (isEnabled !== false)
    return { ...base, reason: 'LinkDown', message: `port ${port}: ${interfaceName} is up and has no link`, level: false };
  const message = `port ${port}: an administrator took ${interfaceName} down`;
  return { ...base, reason: 'PortDisabled', message, level: false, severity: 'info', remedy: 'enable-port' };
}

/** Findings of a virtual function: the port of its physical function, and the setting of its own link. Pure. */
export function virtualFindings(parent: string, port: PortSample | undefined, told: VirtualFunction | undefined): Finding[] {
  return [...(port === undefined ? [] : [parentPort(parent, portDown(port))]), ...ownLink(told)];
}

const PARENT_REASONS: Readonly<Record<string, string>> = { LinkDown: 'ParentPortDown', PortDisabled: 'ParentPortDisabled' };

const parentPort = (parent: string, finding: Finding): Finding => ({
  ...finding,
  reason: PARENT_REASONS[finding.reason] ?? finding.reason,
  message: `${finding.message}, the physical function ${parent}`,
});

function ownLink(told: VirtualFunction | undefined): Finding[] {
  if (told?.linkState === undefined) return [];
  const status = told.linkState === 'disable';
  const reason = status ? 'LinkStateDisable' : 'LinkStateAllows';
  return [{ type: conditions.VfLinkDisabled.type, status, reason, message: `link-state of the virtual function is ${told.linkState}` }];
}

function counted(type: string, { port, interfaceName }: PortSample, what: string, count: bigint | undefined): Finding[] {
  if (count === undefined) return [];
  return [{ type, instance: port, reason: 'CounterGrows', message: `${what} of ${interfaceName}: ${count}`, count: Number(count) }];
}

import type { Finding } from '../../model/health.ts';
import { raise, raiseGrowth } from '../kit/finding.ts';
import { conditions } from './conditions.ts';
import type { PortSample } from './port.ts';
import type { VirtualFunction } from './virtual-function.ts';

/** Findings of the ports of a physical function, or of a function without SR-IOV. Pure. */
export function portFindings(ports: readonly PortSample[]): Finding[] {
  return ports.flatMap((sample) => {
    const { port, interfaceName, carrierLosses, transmitTimeouts, crcErrors } = sample;
    return [
      portDown(sample),
      ...raiseGrowth(conditions.LinkFlapping, carrierLosses, `carrier losses of ${interfaceName}: ${carrierLosses}`, port),
      ...raiseGrowth(conditions.TransmitTimeout, transmitTimeouts, `transmit timeouts of ${interfaceName}: ${transmitTimeouts}`, port),
      ...raiseGrowth(conditions.ReceiveErrors, crcErrors, `frames with a wrong checksum of ${interfaceName}: ${crcErrors}`, port),
    ];
  });
}

/**
 * A port that was never up is not cabled, which is no fault. The health engine remembers whether the port was up since boot. `parent`: the
 * physical function, when the finding is for its virtual function.
 */
function portDown({ port, interfaceName, isUp, isEnabled }: PortSample, parent?: string): Finding {
  const text = (what: string): string => `port ${port}: ${what}${parent === undefined ? '' : `, the physical function ${parent}`}`;
  const down = { instance: port, level: false };
  if (isUp === undefined) {
    const message = text(`the carrier of ${interfaceName} cannot be read`);
    return raise(conditions.PortDown, 'LinkUnreadable', { instance: port, status: 'unknown', message });
  }
  if (isUp) return raise(conditions.PortDown, 'LinkUp', { instance: port, message: text(`${interfaceName} has a link`), level: true });
  if (isEnabled !== false) {
    const message = text(`${interfaceName} is up and has no link`);
    return raise(conditions.PortDown, parent === undefined ? 'LinkDown' : 'ParentPortDown', { ...down, message });
  }
  const message = text(`an administrator took ${interfaceName} down`);
  const reason = parent === undefined ? 'PortDisabled' : 'ParentPortDisabled';
  return raise(conditions.PortDown, reason, { ...down, message, severity: 'info', remedy: 'enable-port' });
}

/** Findings of a virtual function: the port of its physical function, and the setting of its own link. Pure. */
export function virtualFindings(parent: string, port: PortSample | undefined, fromParent?: VirtualFunction): Finding[] {
  return [...(port === undefined ? [] : [portDown(port, parent)]), ...ownLink(fromParent)];
}

function ownLink(fromParent: VirtualFunction | undefined): Finding[] {
  if (fromParent?.linkState === undefined) return [];
  const status = fromParent.linkState === 'disable';
  const message = `link-state of the virtual function is ${fromParent.linkState}`;
  return [raise(conditions.VfLinkDisabled, status ? 'LinkStateDisable' : 'LinkStateAllows', { status, message })];
}

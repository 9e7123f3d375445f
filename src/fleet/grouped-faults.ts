import { grouped } from '../model/grouped.ts';
import type { FleetFault, FleetNode, NodeFault } from './fleet.ts';

/** A fact that most devices with the fault share can be its cause. */
const MOST_RATIO = 0.6;
const FACTS = ['model', 'driver', 'firmware', 'group'] as const;
interface Placed {
  readonly fault: NodeFault;
  readonly node: FleetNode;
}

/** Faults of one family, condition and reason as one line; fatal ones first, then those of most devices. */
export function groupedFaults(nodes: readonly FleetNode[]): readonly FleetFault[] {
  const placed = nodes.flatMap((node) => node.faults.map((fault) => ({ fault, node })));
  const lines = [...grouped(placed, ({ fault: { family, condition, reason } }) => [family, condition, reason].join('\0')).values()];
  const order = { fatal: 0, degraded: 1, info: 2 };
  const facts = FACTS.filter((fact) => differs(fact, nodes));
  return lines.map((line) => lineOf(line, facts)).toSorted((a, b) => order[a.severity] - order[b.severity] || b.devices - a.devices);
}

/** A fact that all nodes share does not explain a fault. The driver of a healthy node is not known here. */
function differs(fact: (typeof FACTS)[number], nodes: readonly FleetNode[]): boolean {
  if (fact !== 'model' && fact !== 'group') return true;
  return new Set(nodes.flatMap(({ models, group }) => (fact === 'model' ? models : (group ?? '')))).size > 1;
}

function lineOf(placed: readonly Placed[], facts: readonly (typeof FACTS)[number][]): FleetFault {
  const [{ fault: first } = { fault: undefined }] = placed;
  if (first === undefined) throw new Error('a group has a member');
  const { family, condition, reason } = first;
  const devices = [...new Map(placed.map((one) => [[one.node.cluster, one.node.name, one.fault.device].join('\0'), one])).values()];
  return {
    family,
    condition,
    reason,
    severity: placed.some(({ fault }) => fault.severity === 'fatal') ? 'fatal' : first.severity,
    devices: devices.length,
    nodes: [...new Set(placed.map(({ node }) => node.name))],
    hit: [...new Set(placed.flatMap(({ fault }) => fault.hit))],
    shared: devices.length < 2 ? [] : facts.flatMap((fact) => sharedOf(fact, devices)),
  };
}

function sharedOf(fact: (typeof FACTS)[number], placed: readonly Placed[]): FleetFault['shared'] {
  const values = placed.flatMap(({ fault, node }) => (fact === 'group' ? node.group : fault[fact]) ?? []);
  const [most] = [...grouped(values, (value) => value)].toSorted(([, a], [, b]) => b.length - a.length);
  if (most === undefined || most[0] === '' || most[1].length < Math.max(2, placed.length * MOST_RATIO)) return [];
  return [{ fact, value: most[0], devices: most[1].length }];
}

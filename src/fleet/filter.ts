import type { FleetNode, NodeFault } from './fleet.ts';

/**
 * Nodes that match all words of a text, in their order: `state:`, `family:`, `model:`, `driver:` (of a faulty device), `namespace:`, `node:`, `group:` match one fact; with another key, as in
 * `port:1`, a fault has both in its name. Other words match any text of the node. Upper case is as lower case.
 */
export function filtered(nodes: readonly FleetNode[], text: string): readonly FleetNode[] {
  const tests = text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '')
    .map(testOf);
  return nodes.filter((node) => tests.every((test) => test(node)));
}

const KEYS: Readonly<Record<string, (node: FleetNode, value: string) => boolean>> = {
  state: ({ state }, value) => state === value,
  family: ({ families, faults }, value) => [...families, ...faults.map(({ family }) => family)].includes(value),
  model: ({ models }, value) => has(models, value),
  driver: ({ faults }, value) =>
    has(
      faults.flatMap(({ driver }) => driver ?? []),
      value,
    ),
  node: ({ name }, value) => has([name], value),
  group: ({ group = '' }, value) => has([group], value),
  namespace: ({ namespaces, faults }, value) =>
    namespaces.includes(value) || faults.some(({ hit }) => hit.some((pod) => pod.toLowerCase().startsWith(`${value}/`))),
};

function testOf(word: string): (node: FleetNode) => boolean {
  const [, key, value = ''] = /^([a-z]+):(.*)$/.exec(word) ?? [];
  if (key !== undefined)
    return Object.hasOwn(KEYS, key)
      ? (node) => KEYS[key]?.(node, value) === true
      : ({ faults }) => faults.some((one) => isNamed(one, key, value));
  return ({ name, cluster = '', group = '', models, faults }) =>
    has([name, cluster, group, ...models, ...faults.flatMap((one) => [one.name, one.device, one.condition, one.reason, ...one.hit])], word);
}

/** A number stands for itself: 7 is not 79. */
function isNamed({ condition, part = '', reason }: NodeFault, key: string, value: string): boolean {
  const text = `${condition} ${part} ${reason}`.toLowerCase();
  return text.includes(key) && text.split(/(\d+)|\W+/).includes(value);
}

const has = (texts: readonly string[], value: string): boolean => texts.some((text) => text.toLowerCase().includes(value));

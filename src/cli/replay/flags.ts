import type { Flags } from '../../config/configuration.ts';
import type { Registry } from '../../config/registry.ts';
import type { ReplayNode } from '../../sim/replay/replay-node.ts';

/** Options of a replayed node; the user's flags override them. An option that this version of the agent does not have is left out. */
export function replayFlags(registry: Registry, node: Pick<ReplayNode, 'options'>, given: Flags): Flags {
  const known = new Set(registry.entries.map(({ key }) => key));
  return new Map<string, string | boolean>([...Object.entries(node.options()).filter(([key]) => known.has(key)), ...given]);
}

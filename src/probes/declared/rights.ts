import type { Declaration } from './declaration.ts';

/** What a declaration asks for beyond the values of files, one text for each: only a declaration that the administrator wrote gets it. */
export function partsWithPower({ commands = {}, devices, resources = [] }: Declaration): readonly string[] {
  const nodes = [...new Set(devices.flatMap(({ nodes: own = [] }) => own))];
  return [
    ...Object.entries(commands).map(([name, { path }]) => `the program ${name} (${path}) does not run`),
    ...nodes.map((node) => `the device node ${node} is given to no container`),
    ...resources.map(({ resource }) => `the resource ${resource} gets no holders from it`),
  ];
}

/** The declaration without device nodes and resources. Its programs stay, for their options and their problem. */
export function withoutPower({ resources: _, ...declaration }: Declaration): Declaration {
  return { ...declaration, devices: declaration.devices.map(({ nodes: __, ...devices }) => devices) };
}

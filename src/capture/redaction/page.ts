import type { Documents } from './documents.ts';
import type { Pseudonyms } from './pseudonyms.ts';
import type { Shape, Shapes } from './shapes.ts';

/** Labels that name something of the cluster, with the prefix of the replacement. */
const NAMES: readonly (readonly [label: RegExp, prefix: string])[] = [
  [/namespace$/, 'ns'],
  [/pod$/, 'pod'],
  [/container$/, 'ctr'],
  [/claim$/, 'claim'],
  [/pool$/, 'pool'],
];
/** Labels with what all boards of a kind share. */
const TEXTS =
  /^(?:model|vendor|brand|rate|board_id|board_part|gpu_part|driver|firmware|vbios|gsp_firmware|\w*version|bitstream_id|shell|compat_id|accelerator_id|memory_vendor|gfx_target|hardware_revision)$/;
/** Labels with identities. */
const IDENTITIES = /^(?:serial|uuid|unique_id|\w*guid)$/;
const NAMES_OF_RESOURCES = /^(?:resource|driver_name|dra_driver)$/;
const LABEL = /([{,])([a-zA-Z_]\w*)="((?:[^"\\\n]|\\.)*)"/g;

/** Replaces names and identities in the labels of a metrics page. Values are numbers, and comments are of the agent. */
export function redactLabels(page: string, pseudonyms: Pseudonyms, shapes: Shapes, documents: Documents): string {
  const other = (label: string, value: string): string => {
    const prefix = NAMES.find(([name]) => name.test(label))?.[1];
    if (prefix !== undefined) return pseudonyms.name(value, prefix);
    if (NAMES_OF_RESOURCES.test(label)) return documents.public(value);
    const shape: Shape = TEXTS.test(label) ? 'texts' : IDENTITIES.test(label) ? 'nothing' : 'names';
    return shapes.redact(value, shape);
  };
  return page
    .split('\n')
    .map((line) =>
      line.startsWith('#')
        ? line
        : line.replaceAll(LABEL, (_, head: string, label: string, value: string) => `${head}${label}="${other(label, value)}"`),
    )
    .join('\n');
}

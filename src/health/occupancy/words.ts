import type { OwnedProcess } from '../../model/device-use.ts';
import { oneLine } from '../../model/one-line.ts';

const MOST = 3;

/** Lists the first three, and counts the others. */
export function listed(texts: readonly string[]): string {
  const others = texts.length - MOST;
  return others > 0 ? `${texts.slice(0, MOST).join(', ')} and ${others} more` : texts.join(', ');
}

/** `process 4242 (python3) of pod ml/train-0, 1024 MiB, gpu 97 %`. */
export function processText({
  pid,
  name,
  isStuck,
  owner,
  podName,
  containerId,
  memoryUsedBytes,
  utilization = {},
  isMpsClient,
}: OwnedProcess): string {
  const called = name === undefined ? '' : ` (${oneLine(name)})`;
  const engines = Object.entries(utilization).filter(([, share]) => share > 0);
  return [
    `process ${pid}${called} ${placeText(owner, podName, containerId)}`,
    ...(memoryUsedBytes === undefined ? [] : [memoryText(memoryUsedBytes)]),
    ...engines.map(([engine, share]) => shareText(engine, share)),
    ...(isMpsClient === true ? ['a client of an MPS server'] : []),
    ...(isStuck === true ? ['waits in the kernel'] : []),
  ].join(', ');
}

function placeText(owner: OwnedProcess['owner'], podName: string | undefined, containerId: string | undefined): string {
  if (podName !== undefined) return `of pod ${podName}`;
  if (owner === 'unknown') return 'of an unknown owner';
  return containerId === undefined ? 'outside of pods' : `of container ${containerId.slice(0, 12)} outside of pods`;
}

export const memoryText = (bytes: number): string => `${Math.round(bytes / 1_048_576)} MiB`;

export const shareText = (engine: string, share: number): string => `${engine} ${Math.round(share * 100)} %`;

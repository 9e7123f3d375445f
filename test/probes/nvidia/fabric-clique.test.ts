import { expect, it } from 'vitest';
import { FabricCliques } from '../../../src/probes/nvidia/fabric-findings.ts';
import type { GpuSample } from '../../../src/probes/nvidia/sample.ts';

const UNREAD: GpuSample = { fabric: { state: 'completed', hasFailed: false } };
const LOST: GpuSample = { unread: [{ value: 'temperatureCelsius', name: 'temperature/gpu_temp', kind: 'lost', text: 'GPU is lost' }] };
const ERROR: GpuSample = { fabric: {}, unread: [{ value: 'fabric', name: 'fabric/state', kind: 'error', text: 'Unknown Error' }] };
const OUTSIDE: GpuSample = { fabric: { state: 'in_progress' } };
const inClique = (clique: number): GpuSample => ({ fabric: { state: 'completed', clique: String(clique), cluster: 'c' } });

const judged = (...gpus: GpuSample[]) => {
  const findings = new FabricCliques().take(gpus);
  return gpus.map(
    (gpu) =>
      findings(gpu)
        .filter(({ type }) => type === 'FabricCliqueDiffers')
        .map((finding) => ('status' in finding ? finding.status : undefined))[0],
  );
};

it('says nothing of a GPU while those that were not read decide what most GPUs are in', () => {
  expect(judged(inClique(1), inClique(1), inClique(1), inClique(2))).toEqual([false, false, false, true]);
  expect(judged(inClique(1), inClique(1), UNREAD, inClique(2))).toEqual([undefined, undefined, undefined, true]);
  expect(judged(inClique(1), ERROR)).toEqual([undefined, undefined]);
  expect(judged(inClique(1), UNREAD)).toEqual([undefined, undefined]);
  expect(judged(inClique(1), inClique(2), inClique(2), LOST)).toEqual([true, undefined, undefined, undefined]);
  expect(judged(inClique(1), inClique(1), LOST)).toEqual([false, false, undefined]);
});

it('compares a GPU that has not joined the fabric with none', () => {
  expect(judged(inClique(1), OUTSIDE)).toEqual([false, undefined]);
  expect(judged(inClique(1), inClique(2), OUTSIDE)).toEqual([true, true, undefined]);
});

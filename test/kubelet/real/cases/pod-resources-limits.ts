import { status } from '@grpc/grpc-js';
import { PodResourcesListerService as V1 } from '../../../../src/generated/podresources/v1/api.ts';
import { PodResourcesListerService as V1alpha1 } from '../../../../src/generated/podresources/v1alpha1/api.ts';
import type { Case } from '../support/any-kubelet.ts';
import { type Answer, emptyCalls } from '../support/stage.ts';

const V1_PATHS = [V1.list.path, V1.get.path, V1.getAllocatableResources.path];
const NO_METHODS = ['/v1alpha1.PodResourcesLister/Get', '/v1alpha1.PodResourcesLister/GetAllocatableResources'];
const times = (count: number, path: string): string[] => Array.from({ length: count }, () => path);
const isLimited = ({ code }: Answer): boolean => code === status.RESOURCE_EXHAUSTED;

/** How the PodResources services refuse. */
export const POD_RESOURCES_LIMITS: readonly Case[] = [
  {
    name: 'lets ten calls through at once and a hundred in a second',
    observe: async ({ kubelet }) => {
      const beganMs = performance.now();
      const answers = await emptyCalls(kubelet, times(200, V1.list.path));
      const tookMs = performance.now() - beganMs;
      const passed = answers.filter((answer) => !isLimited(answer)).length;
      return {
        isEnough: passed >= 10,
        isNotMore: passed <= 11 + tookMs / 10,
        words: [...new Set(answers.filter(isLimited).map(({ details }) => details))],
      };
    },
    expected: { isEnough: true, isNotMore: true, words: ['rejected by rate limit'] },
  },
  {
    name: 'counts calls of all methods and versions in one, also those that fail',
    observe: async ({ kubelet }) => {
      // Nobody knows the pod without a name.
      await emptyCalls(kubelet, times(60, V1.get.path));
      const after = [V1.list.path, V1.getAllocatableResources.path, V1alpha1.list.path];
      const paths = Array.from({ length: 60 }, (_, at) => after[at % 3] as string);
      const answers = await emptyCalls(kubelet, [...times(30, V1.get.path), ...paths]);
      return after.map((path) => answers.some((answer, at) => at >= 30 && paths[at - 30] === path && isLimited(answer)));
    },
    expected: [true, true, true],
  },
  {
    name: 'does not count calls of what is not there',
    observe: async ({ kubelet }) => {
      const unknown = await emptyCalls(kubelet, times(100, NO_METHODS[0] as string));
      const known = await emptyCalls(kubelet, times(10, V1.list.path));
      return { unknown: unknown.filter(isLimited).length, known: known.filter(isLimited).length };
    },
    expected: { unknown: 0, known: 0 },
  },
  {
    name: 'says which method or service is not there',
    onlyV1alpha1: true,
    observe: ({ kubelet }) => emptyCalls(kubelet, [V1alpha1.list.path, ...V1_PATHS, ...NO_METHODS]),
    expected: [
      { code: status.OK, details: '' },
      ...V1_PATHS.map(() => ({ code: status.UNIMPLEMENTED, details: 'unknown service v1.PodResourcesLister' })),
      ...['Get', 'GetAllocatableResources'].map((method) => ({
        code: status.UNIMPLEMENTED,
        details: `unknown method ${method} for service v1alpha1.PodResourcesLister`,
      })),
    ],
  },
];

import { expect, it } from 'vitest';
import { casesOf } from './cases/all.ts';
import type { Case } from './support/any-kubelet.ts';
import { observed } from './support/observed.ts';
import { describeReal, RELEASE, RealKubelet } from './support/real-kubelet.ts';
import { closeAfterEach } from './support/watched-node.ts';

closeAfterEach();

const realKubelet = ({ policy = 'none', scope = 'container', onlyV1alpha1 = false }: Case): RealKubelet =>
  new RealKubelet(['-topology-policy', policy, '-topology-scope', scope, ...(onlyV1alpha1 ? ['-only-v1alpha1'] : [])]);

describeReal("the kubelet's own code", () => {
  for (const one of casesOf(RELEASE)) {
    it(one.name, async () => {
      expect(await observed(realKubelet(one), one)).toEqual(one.expected);
    });
  }
});

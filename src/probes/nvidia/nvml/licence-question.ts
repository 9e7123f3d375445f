import { LICENCES } from './header.ts';
import { type Question, valueQuestion } from './question.ts';

/** Only a vGPU needs a licence; boards on the host answer, too. */
export const LICENCE_QUESTION: Question = {
  ...valueQuestion('slow', {
    symbol: 'nvmlDeviceGetGridLicensableFeatures_v4',
    reads: {
      isLicensed: (out) => {
        const count = Math.min(out.u32(LICENCES.count), LICENCES.most);
        const states = Array.from({ length: count }, (_, index) => out.u32(LICENCES.list + index * LICENCES.size + LICENCES.state));
        return count === 0 ? undefined : states.some((state) => state !== 0);
      },
    },
  }),
  unless: (answers) => answers.sample().identity?.virtualization !== 'VGPU',
};

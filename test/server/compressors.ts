import { createHook } from 'node:async_hooks';

/** Compressors made while `work` goes on, in this process. */
export const compressors = async (work: () => Promise<unknown>): Promise<number> => {
  let count = 0;
  const hook = createHook({
    init(_id, type) {
      if (type === 'ZLIB') count += 1;
    },
  }).enable();
  await work();
  hook.disable();
  return count;
};

import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    testTimeout: 20_000,
    hookTimeout: 20_000,
    pool: 'forks',
    projects: [
      { extends: true, test: { name: 'floors', include: ['test/floors.test.ts'] } },
      {
        extends: true,
        test: { name: 'tests', include: ['test/**/*.test.ts'], exclude: ['test/floors.test.ts', 'test/kubelet/real/**', 'test/node/**'] },
      },
    ],
  },
});

import { describe, expect, it } from 'vitest';
import { run } from '../cli/command-line.ts';

describe('lines of libraries', () => {
  it('are not on stderr, even when the environment asks a library for traces', async () => {
    const environment = { GRPC_TRACE: 'all', GRPC_VERBOSITY: 'DEBUG' };
    const { stderr } = await run(['list', '--podresources.socket=/none/kubelet.sock', '--podresources.timeout=1s'], environment);
    for (const line of stderr.split('\n').filter((text) => text !== '')) expect(line).toMatch(/^\S+Z (?:INFO|WARN|ERROR) /);
    const debug = await run(['list', '--podresources.socket=/none/kubelet.sock', '--log.level=debug'], environment);
    for (const line of debug.stderr.split('\n').filter((text) => text !== '')) expect(line).toMatch(/^\S+Z (?:DEBUG|INFO|WARN|ERROR) /);
  });
});

import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { Capture, CapturedCommand, CapturedRead, CapturedRequest } from '../../../src/capture/format.ts';
import { ReplayedNode } from '../../../src/cli/replay/node.ts';
import { loadFamilies } from '../../../src/config/sections.ts';
import { systemClock } from '../../../src/host/clock.ts';
import { runCommand } from '../../../src/host/process/command.ts';
import { PodResourcesClient } from '../../../src/kubelet/client/client.ts';
import { podResourcesOptions } from '../../../src/kubelet/options.ts';
import { familyLoaders } from '../../../src/probes/families.ts';
import { captureOf } from '../../support/one-capture.ts';

const families = await loadFamilies(familyLoaders);
const nodes: ReplayedNode[] = [];
afterEach(() => {
  for (const node of nodes.splice(0)) node.stop();
});

function replay(reads: readonly Partial<CapturedRead>[], about: Partial<Capture> = {}): ReplayedNode {
  const node = new ReplayedNode(captureOf(reads[0] ?? {}, reads[1], about), families);
  nodes.push(node);
  return node;
}

describe('the options of a replayed node', () => {
  it('are those by which the captured agent read, and none that names a file, a program or an address', () => {
    const options = {
      'refresh.facts': '5s',
      'probe.infiniband.expected-ports': 'mlx5_0/1,mlx5_1/2',
      'probe.some.tool-path': '/bin/rm',
      'probe.some.tool-library': 'evil.so',
      'probe.some.thing': '/etc/passwd',
      'web.listen-address': '0.0.0.0:1',
      'web.config.file': '/etc/passwd',
      'config.file': '/etc/passwd',
      'health-feed.socket': '/run/x',
    };
    const node = replay([{}], { options, parts: { 'join.rules': [], __proto__x: 1, web: { page: true } } });
    const taken = node.options();
    expect(taken['refresh.facts']).toBe('5s');
    expect(taken['probe.infiniband.expected-ports']).toBe('mlx5_0/1,mlx5_1/2');
    expect(taken['probe.some.tool-path']).toBe(join(node.root, 'bin/program-0'));
    expect(Object.keys(taken)).not.toContain('probe.some.tool-library');
    expect(Object.keys(taken)).not.toContain('probe.some.thing');
    expect(Object.keys(taken).filter((key) => key.startsWith('web.') || key.startsWith('health-feed'))).toEqual([]);
    expect(taken['config.file']?.startsWith(node.root)).toBe(true);
    expect(JSON.parse(readFileSync(taken['config.file'] as string, 'utf8'))).toEqual({ join: { rules: [] } });
  });
});

describe('the sources of a replayed node', () => {
  const call = { symbol: 'nvmlInit_v2', types: '', values: [], code: 0, memory: [] };
  const sourcesOf = (read: Partial<CapturedRead>, options: Readonly<Record<string, string>> = {}) => {
    const node = replay([read], { options });
    const {
      'probe.nvidia.source': source,
      'probe.nvidia.nvml-library': library = '',
      'probe.netdev.source': netdev,
      'path.kmsg': log,
    } = node.options();
    return [source, library.replace(node.root, ''), netdev, log?.replace(node.root, '')];
  };

  it('are never those of the machine of the replay', () => {
    expect(sourcesOf({})).toEqual(['smi', '', 'ip', '/dev/kmsg']);
    expect(sourcesOf({ library: [call] })).toEqual(['auto', '/library.json', 'ip', '/dev/kmsg']);
    expect(sourcesOf({}, { 'probe.nvidia.source': 'nvml', 'probe.netdev.source': 'sysfs', 'path.kmsg': '/run/log' })).toEqual([
      'nvml',
      '/library.json',
      'sysfs',
      '/log/kmsg',
    ]);
  });
});

describe('the commands of a replayed node', () => {
  const command = { program: 'nvidia-smi', args: ['-q', '-x'], stdout: '', stderr: '' };
  const run = async (node: ReplayedNode, ...args: string[]) =>
    await runCommand(node.options()['probe.nvidia.smi-path'] ?? '', args, { deadlineMs: 5_000 });

  const withSmi = (...reads: readonly (readonly CapturedCommand[])[]): ReplayedNode =>
    replay(
      reads.map((commands) => ({ commands })),
      { options: { 'probe.nvidia.smi-path': 'nvidia-smi' } },
    );

  it('print and end as they did, read by read', async () => {
    const node = withSmi(
      [{ ...command, stdout: "it's $HOME `id`\n", stderr: 'warning\n', exitCode: 14 }],
      [
        { ...command, args: ['-L'], stdout: 'list', exitCode: 0 },
        { ...command, stdout: 'other', signal: 'SIGKILL' },
      ],
    );
    await node.show(0);
    expect(await run(node, '-q', '-x')).toEqual({ stdout: "it's $HOME `id`\n", stderr: 'warning\n', exitCode: 14 });
    expect((await run(node, '-L')).exitCode).toBe(127);
    await node.show(1);
    expect(await run(node, '-q', '-x')).toEqual({ stdout: 'other', stderr: '', signal: 'SIGKILL' });
    expect(await run(node, '-L')).toEqual({ stdout: 'list', stderr: '', exitCode: 0 });
  });

  it.each([
    ['not-found', 'not-found'],
    ['permission', 'permission'],
    ['too-large', 'too-large'],
  ])('fail with %s as they did', async (failure, expected) => {
    const node = withSmi([{ ...command, failure }]);
    await node.show(0);
    expect((await run(node, '-q', '-x')).failure).toBe(expected);
  });

  it('run nothing of the archive', async () => {
    const node = replay(
      [
        {
          commands: [
            { ...command, program: '../../tmp/x; touch y', args: ["') touch evil ;; ('", '*'], stdout: '$(touch evil)', exitCode: 0 },
          ],
        },
      ],
      {
        options: { 'probe.nvidia.smi-path': '../../tmp/x; touch y' },
      },
    );
    await node.show(0);
    const program = node.options()['probe.nvidia.smi-path'] ?? '';
    expect(program.startsWith(join(node.root, 'bin/'))).toBe(true);
    expect(execFileSync(program, ["') touch evil ;; ('", '*'], { cwd: node.root, encoding: 'utf8' })).toBe('$(touch evil)');
    expect(existsSync(join(node.root, 'evil'))).toBe(false);
  });

  it.each(['..', '.', '', '/', '../..', '\u0000', 'a\nb', 'x'.repeat(5_000)])(
    'write only below their own folder for the program %j',
    async (program) => {
      const node = replay([{ commands: [{ ...command, program, stdout: 'printed', exitCode: 0 }] }], {
        options: { 'probe.nvidia.smi-path': program },
      });
      await node.show(0);
      expect(execFileSync(node.options()['probe.nvidia.smi-path'] ?? '', ['-q', '-x'], { encoding: 'utf8' })).toBe('printed');
      node.stop();
      expect(readdirSync(dirname(node.root)).filter((name) => name.startsWith(basename(node.root)))).toEqual([]);
    },
  );

  it('are two where two programs have the same name', async () => {
    const programs = ['/a/tool', '/b/tool'];
    const commands = programs.map((program) => ({ ...command, program, stdout: program, exitCode: 0 }));
    const node = replay([{ commands }], { options: { 'probe.one.tool-path': '/a/tool', 'probe.two.tool-path': '/b/tool' } });
    await node.show(0);
    const printed = ['one', 'two'].map((family) =>
      execFileSync(node.options()[`probe.${family}.tool-path`] ?? '', ['-q', '-x'], { encoding: 'utf8' }),
    );
    expect(printed).toEqual(programs);
  });
});

describe('the kubelet of a replayed node', () => {
  const METHOD = '/v1.PodResourcesLister/List';
  const defaults = Object.fromEntries(Object.entries(podResourcesOptions).map(([name, { default: value }]) => [name, value]));
  const listed = async (node: ReplayedNode): Promise<string> => {
    const client = new PodResourcesClient({ ...defaults, socket: node.options()['podresources.socket'] } as never, systemClock);
    const result = await client.list();
    client.close();
    return result.ok ? `${result.api} ${result.identity}` : result.failure.reason;
  };

  it('answers as it did: not there, with an answer, with an error, refused', async () => {
    const states: readonly (readonly CapturedRequest[])[] = [
      [],
      [{ method: METHOD, answer: '' }],
      [{ method: METHOD, error: { code: 8, details: 'rejected by rate limit' } }],
      [{ method: METHOD, error: { code: 14, details: 'x', errno: 'ECONNREFUSED' } }],
    ];
    const answers: string[] = [];
    for (const requests of states) {
      const node = replay([{ requests }]);
      await node.show(0);
      answers.push(await listed(node));
    }
    expect(answers).toEqual(['socket-missing', expect.stringMatching(/^v1 /), 'rate-limited', 'refused']);
  });
});

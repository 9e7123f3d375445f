import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The project that runs a file of tests. */
export type Project = 'floors' | 'pure' | 'tests' | 'programs' | 'kubelet' | 'node' | 'kernel' | 'release';

const BY_PLACE: readonly (readonly [place: string, project: Project])[] = [
  ['test/floors.test.ts', 'floors'],
  ['test/waits.test.ts', 'floors'],
  // They have the words that tell the others apart.
  ['test/support/projects.test.ts', 'pure'],
  // The built program as a whole: it starts it once.
  ['test/e2e/journey.test.ts', 'tests'],
  ['test/kubelet/real/', 'kubelet'],
  ['test/node/', 'node'],
  ['test/kernel/', 'kernel'],
  ['test/release/whole/', 'release'],
];

/**
 * How a file of tests or a helper starts the built program, or a program of others that takes seconds or that few developers have, or repeats what chance decides;
 * or what it says in its first line because it needs real time or plays histories in number.
 */
const OF_PROGRAMS =
  /\bfrom '[^']*\/program\.ts'|^\/\/ Project: programs\b|\bstart(?:Prometheus|Alertmanager)\(|isInstalled\('promtool'\)|support\/promtool\.ts'|'promtool', 'cc'|\bchromium\b|support\/chart\.ts'|python-package\.ts'|repetitions\.ts'/;

/**
 * What others in the same process would notice, or what needs a process of its own: processes that run beside the test, threads, sockets, mocked modules and clocks,
 * the state, the limits and the memory of the process.
 */
const NOT_PURE: readonly RegExp[] = [
  /import \{[^}]*(?<!type )\b(?:spawn|fork|exec|execFile)\b[^}]*\} from 'node:child_process'/,
  /\bprlimit\b|\bulimit\b/,
  /^import (?!type )[^;]*? from '(?:node:(?:net|http|https|http2|tls|dgram)|@grpc\/grpc-js)'/m,
  /(?<!type \{[^}]*)from 'node:(?:worker_threads|cluster|v8)'/,
  /\bvi\.(?:mock|doMock|hoisted|stubGlobal|stubEnv|resetModules|useFakeTimers|setSystemTime)\b/,
  /\bprocess\.env(?:\.\w+|\[[^\]]+\])\s*\??=(?!=)|delete process\.env|Object\.assign\(process\.env/,
  /\bprocess\.(?:chdir|umask|kill|on|once|exit|exitCode|set[eug]+id|stdout|stderr|memoryUsage|resourceUsage)\b/,
  /\bglobalThis\.\w+ =|\bglobal\.gc\b|\bprocess_open_fds\b|\/proc\/self\/(?:fd|task|status|smaps)/,
];

/** A read that hangs takes a thread of the process for good, and descriptors are those of the process. A helper may offer both. */
const NOT_PURE_ITSELF = /\bEMFILE\b|fifo|\bEHUNG\b/i;

/** A file of tests and the helpers that it loads. */
function withHelpers(path: string, seen = new Map<string, string>()): ReadonlyMap<string, string> {
  const text = readFileSync(path, 'utf8');
  seen.set(path, text);
  for (const [, name = ''] of text.matchAll(/^(?:import|export) (?!type )[^;]*?from '(\.[^']+\.ts)';$/gm)) {
    const helper = join(dirname(path), name);
    if (/(?:^|\/)test\//.test(helper) && !seen.has(helper) && existsSync(helper)) withHelpers(helper, seen);
  }
  return seen;
}

/**
 * Which project runs a file: a folder of its own decides, then what it and its helpers say. `programs`: it starts the built program or programs of others, plays histories, or needs
 * real time. `pure`: it shares a process with other files, because it does nothing that others would notice. `tests`: all else, each file in a process of its own.
 */
export function projectOf(path: string): Project {
  const placed = BY_PLACE.find(([place]) => path.startsWith(place));
  if (placed !== undefined) return placed[1];
  const texts = [...withHelpers(path).values()];
  if (texts.some((text) => OF_PROGRAMS.test(text))) return 'programs';
  const isPure = !texts.some((text) => NOT_PURE.some((pattern) => pattern.test(text)));
  return isPure && !NOT_PURE_ITSELF.test(readFileSync(path, 'utf8')) ? 'pure' : 'tests';
}

/** All files of tests of a project. */
export function filesOf(project: Project): string[] {
  const files = readdirSync('test', { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.test.ts'));
  return files.map((name) => `test/${name}`).filter((path) => projectOf(path) === project);
}

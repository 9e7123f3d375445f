import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { scriptedLibrary } from '../probes/nvidia/scripted-machine.ts';
import type { ScriptedNode } from '../probes/nvidia/scripted-script.ts';
import { isInstalled } from '../support/installed.ts';

/** The program of GPUd: the one that GPUD names, or that of the path. */
const PROGRAM = process.env.GPUD ?? 'gpud';

/** Why GPUd cannot be run here; undefined when it can. */
export const whyNotGpud = (): string | undefined => {
  if (!isInstalled(PROGRAM)) return 'gpud is not installed, and GPUD names no program';
  if (!isInstalled('nm') || !isInstalled('cc')) return 'a C compiler is not installed';
  return isInstalled('unshare', '-n', 'true') ? undefined : 'no network namespace may be made';
};

/** What GPUd reads of a machine. */
export interface GpudMachine {
  readonly gpus: ScriptedNode;
  /** Files and links, from which the class of the adapters is used. */
  readonly files?: Readonly<Record<string, string>>;
  readonly links?: Readonly<Record<string, string>>;
  /** Lines of `lspci -nn`. */
  readonly pci: readonly string[];
}

/** Lines of one scan that are not well. Their order has no meaning. */
export function scan(machine: GpudMachine): readonly string[] {
  const root = mkdtempSync(join(tmpdir(), 'device-agent-gpud-'));
  const place = (path: string): string => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    return join(root, path);
  };
  try {
    for (const [path, text] of Object.entries(machine.files ?? {})) writeFileSync(place(path), text);
    for (const [path, target] of Object.entries(machine.links ?? {})) symlinkSync(target, place(path));
    mkdirSync(join(root, 'sys/class/infiniband'), { recursive: true });
    writeFileSync(place('bin/lspci'), `#!/bin/sh\ncat <<'END'\n${machine.pci.join('\n')}\nEND\n`);
    chmodSync(join(root, 'bin/lspci'), 0o755);
    const { path: library } = scriptedLibrary(root, machine.gpus);
    execFileSync('mkfifo', [join(root, 'kmsg')]);
    // A log without an end of file, as the kernel's. Without a network nobody can be asked about the machine.
    const script = `exec 9<>"$KMSG_FILE_PATH"; exec unshare -n "$0" scan --infiniband-class-root-dir "$1"`;
    const output = execFileSync('sh', ['-c', script, PROGRAM, join(root, 'sys/class/infiniband')], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
      env: {
        ...process.env,
        PATH: `${join(root, 'bin')}:${process.env.PATH}`,
        KMSG_FILE_PATH: join(root, 'kmsg'),
        GPUD_NVML_LIBRARY_PATH: library,
        LD_LIBRARY_PATH: root,
        LD_PRELOAD: unknownCalls(root, library),
      },
    });
    return output.split('\n').flatMap((line) => /[✘⚠]\S* (.*)$/u.exec(line)?.[1] ?? []);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

/** Calls that GPUd knows and the library of the tests does not. All but three are not supported. */
const ANSWERS: Readonly<Record<string, string>> = {
  nvmlErrorString: 'const char *nvmlErrorString(int code) { return code == 3 ? "Not Supported" : "Unknown Error"; }',
  nvmlSystemGetCudaDriverVersion_v2: 'int nvmlSystemGetCudaDriverVersion_v2(int *version) { *version = 13010; return 0; }',
  nvmlDeviceGetCudaComputeCapability:
    'int nvmlDeviceGetCudaComputeCapability(void *gpu, int *major, int *minor) { (void)gpu; *major = 9; *minor = 0; return 0; }',
};

function unknownCalls(root: string, library: string): string {
  const symbols = (kind: string, file: string): ReadonlySet<string> =>
    new Set(execFileSync('nm', ['-D', kind, file], { encoding: 'utf8' }).match(/\bnvml\w+/g));
  const known = symbols('--defined-only', library);
  const program = execFileSync('sh', ['-c', 'command -v "$0"', PROGRAM], { encoding: 'utf8' }).trim();
  const missing = [...symbols('--undefined-only', program)].filter((symbol) => !known.has(symbol));
  const source = join(root, 'unknown-calls.c');
  writeFileSync(source, missing.map((symbol) => `${ANSWERS[symbol] ?? `int ${symbol}(void) { return 3; }`}\n`).join(''));
  execFileSync('cc', ['-shared', '-fPIC', '-w', '-o', join(root, 'unknown-calls.so'), source]);
  return join(root, 'unknown-calls.so');
}

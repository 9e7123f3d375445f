import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, it } from 'vitest';

/** Who may import whom: a file imports its own top folder or a lower floor. */
const FLOORS: Readonly<Record<string, number>> = {
  model: 0,
  generated: 0,
  'errors.ts': 1,
  host: 2,
  log: 2,
  probes: 3,
  kubelet: 3,
  join: 3,
  health: 3,
  incidents: 3,
  accounting: 3,
  waiting: 3,
  board: 3,
  metrics: 3,
  capture: 3,
  plugin: 3,
  server: 4,
  supervisor: 4,
  web: 4,
  agent: 5,
  fleet: 5,
  config: 6,
  sim: 6,
  cli: 7,
};

/** Code of one family. All other code must work for a family that does not exist yet: what it must know of a family, the family declares. */
const OF_ONE_FAMILY =
  /^(?:probes\/(?!kit\/)[^/]+\/|probes\/families\.ts$|sim\/families(?:\/|\.ts$)|generated\/)|^probes\/kit\/(?:network-drivers|ethernet-drivers|network-conditions|repeating-drivers)\.ts$/;
const OF_VENDORS = new RegExp(
  [
    'nvidia|nvml|nvlink|nvswitch|nv-hostengine|nv-fabricmanager|geforce|tesla|dcgm|cuda|nccl|[ah]100|\\bxids?\\b|\\bmigs?\\b|\\bmigprofile|\\bgpm\\b',
    '\\bamd|amdgpu|radeon|rocm|xgmi|\\bkfd\\b|xilinx|alveo|\\bxrt\\b',
    '\\bintel(?:\\b|gpu)|\\bi915\\b|\\bxe\\b|opae|\\bdfl\\b|altera|\\bqat\\b|habana|gaudi|omni-?path',
    'mellanox|\\bmlx|connectx|infiniband|\\bhcas?\\b|rdma|\\bib_|openshift',
    'broadcom|bnxt|chelsio|pensando|\\bionic\\b|\\birdma\\b|\\bhfi1|ibportstate|instinct|versal|agilex|stratix|kioxia|solidigm',
    'fpgas?|nvme|\\bneuron|trainium|\\btpus?\\b|samsung',
  ].join('|'),
  'i',
);

/** Words of one family in shared code, by the beginning of their line, and why they are there. */
const ALLOWED: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'board/words.ts': { "'enable-port'": 'one remedy for ports of two link layers, with the command of each' },
  'cli/commands.ts': {
    'examples:': 'examples that a reader can run',
    "'device-agent demo": 'an example that a reader can run',
    "'device-agent incidents": 'an example that a reader can run',
  },
  'config/structured.ts': {
    'example:': 'examples that are valid, so they need the names of families',
    'conditions:': 'part of an example',
    'ignore:': 'part of an example',
    '{ resource:': 'part of an example',
  },
  'agent/options.ts': {
    "'Time between two reads": 'values that are read less often than the option says',
    "'Devices to leave out": 'an example, and families that open no file',
  },
  'sim/fleet.ts': { 'const TYPE': 'the devices of a simulated fleet' },
  'model/declaration.ts': { "'admin-commands'": 'the name of a value of the chart' },
};

const files = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.ts'));
const imports = new Map(files.map((path) => [path, importsOf(path)]));

/** Relative imports and re-exports, static and dynamic, types included. */
function importsOf(path: string): string[] {
  const text = readFileSync(join('src', path), 'utf8');
  const found = [...text.matchAll(/(?:from|import)\s*\(?\s*['"](\.{1,2}\/[^'"]+)['"]/g)].map((match) => match[1] as string);
  return found.map((target) => normalize(join(dirname(path), target)));
}

const top = (path: string): string => path.split('/')[0] as string;

/** What watches and judges devices on a node. */
const AGENT =
  /^(?:agent|supervisor|kubelet|join|health|incidents|waiting|accounting|metrics|plugin|probes|server\/(?!api\/views\.ts))(?:\/|$)/;
/** Commands that are guests of the agent: they ask its API. What each imports of the agent beside it, and for what. */
const GUESTS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  publish: { 'incidents/record.ts': 'the form of a record in an answer', 'probes/family.ts': 'the form of what a family declares' },
  top: {},
  capture: {
    'agent/agent.ts': 'reads the node twice, and records what was read',
    'agent/options.ts': 'the time between the two reads',
    'supervisor/reader-process.ts': 'starts readers with the time of the read',
  },
  replay: {
    'agent/agent.ts': 'reads what was recorded',
    'supervisor/reader-process.ts': 'starts readers with the time of the read',
    'probes/family.ts': 'the form of what a family declares',
  },
  demo: {
    'agent/agent.ts': 'starts an agent on the simulated node',
    'probes/family.ts': 'the form of what a family declares',
    'probes/declared/declaration.ts': 'the form of what a family declares',
  },
};

/** Who parses text itself, and why that text is no document of strangers below a mount. Every other file uses `host/documents`. */
const PARSERS: Readonly<Record<string, string>> = {
  'host/documents/json.ts': 'the reader of documents',
  'host/documents/yaml-nodes.ts': 'the reader of documents',
  'host/documents/yaml.ts': 'the reader of documents',
  'host/fs/saved-state.ts': "the agent's own file, with a checksum",
  'host/fs/line-log.ts': "the agent's own file, line by line",
  'host/fs/log-segments.ts': "the agent's own file, its first line",
  'incidents/store.ts': "the agent's own files",
  'accounting/ledger.ts': 'a copy of what it made itself',
  'log/logger.ts': "the logger's own line",
  'cli/list/list.ts': 'a copy of what it made itself',
  'cli/ask-control.ts': 'an answer of the agent',
  'server/control/control-socket.ts': "a line of the agent's own user, whose length is limited",
  'capture/redaction/outputs.ts': 'output of a program, whose size is limited, in the command capture',
  'config/yaml-text.ts': 'writes YAML, and parses none',
  'sim/node.ts': 'writes YAML, and parses none',
  'cli/version.ts': 'a file of the program',
  'cli/agent-api.ts': 'an answer of the agent',
  'cli/demo/control.ts': 'a line of a command to a demo of the same user',
  'cli/demo/running-demos.ts': 'a file of a demo, whose size is limited',
  'server/http/tls-server.ts': 'a name that Node quoted',
  'web/stream.ts': 'an answer of the agent, in a browser',
  'probes/nvidia/smi/document.ts': 'output of a program, whose size is limited',
  'probes/nvme/smart-log.ts': 'a text of 64 KiB at most, with an own check of its form',
  'probes/declared/rows.ts': 'output of a program of 1 MiB at most, in the thread of its family',
  'probes/nvidia/nvml/recorded.ts': 'a file that a replay wrote, in the thread of its family',
};
/** Calls that parse, and imports of parsers. To write YAML is no parsing. */
const PARSES = /\bJSON\.parse\(|\bnew XMLParser\(|from 'js-yaml'|import\('js-yaml'\)/;
/** Uses of the parts that `host/documents/yaml.ts` parsed. */
const PARSED = new Set(['config/text-positions.ts']);

describe('floors', () => {
  it('parse documents of others by the one reader only', () => {
    const found = files.flatMap((path) =>
      readFileSync(join('src', path), 'utf8')
        .split('\n')
        .flatMap((line, n) => (PARSES.test(line) && !PARSED.has(path) ? [{ path, place: `src/${path}:${n + 1}: ${line.trim()}` }] : [])),
    );
    expect(found.filter(({ path }) => PARSERS[path] === undefined).map(({ place }) => place)).toEqual([]);
    expect(Object.keys(PARSERS).filter((path) => !found.some((one) => one.path === path))).toEqual([]);
  });

  it('knows every top folder', () => {
    expect([...new Set(files.map(top))].filter((name) => FLOORS[name] === undefined)).toEqual([]);
  });

  it('lets imports point down or stay in the folder', () => {
    const wrong: string[] = [];
    for (const [path, targets] of imports) {
      for (const target of targets) {
        const from = top(path);
        const to = top(target);
        if (from !== to && (FLOORS[to] ?? 99) >= (FLOORS[from] ?? -1)) wrong.push(`${path} -> ${target}`);
      }
    }
    expect(wrong).toEqual([]);
  });

  it('keeps device families apart', () => {
    const familyOf = (path: string): string | undefined => /^probes\/(?!kit\/)([^/]+)\//.exec(path)?.[1];
    const wrong = [...imports].flatMap(([path, targets]) =>
      targets
        .filter((target) => familyOf(path) !== undefined && familyOf(target) !== undefined && familyOf(path) !== familyOf(target))
        .map((target) => `${path} -> ${target}`),
    );
    expect(wrong).toEqual([]);
  });

  it('lets only the commands of the simulated world import it', () => {
    const wrong = [...imports].flatMap(([path, targets]) =>
      targets
        .filter((target) => top(target) === 'sim' && top(path) !== 'sim' && !/^cli\/(demo|replay)\//.test(path))
        .map((target) => `${path} -> ${target}`),
    );
    expect(wrong).toEqual([]);
  });

  it('lets guests of the agent ask it, and import nothing else of it', () => {
    const found = Object.keys(GUESTS).map((guest) => [
      guest,
      [...imports].flatMap(([path, targets]) => (path.startsWith(`cli/${guest}/`) ? targets.filter((target) => AGENT.test(target)) : [])),
    ]);
    expect(found.map(([guest, targets]) => [guest, [...new Set(targets)].sort()])).toEqual(
      Object.entries(GUESTS).map(([guest, allowed]) => [guest, Object.keys(allowed).sort()]),
    );
  });

  it('names no vendor, product or device of one family in the code that all families share', () => {
    const found = files
      .filter((path) => !OF_ONE_FAMILY.test(path))
      .flatMap((path) =>
        readFileSync(join('src', path), 'utf8')
          .split('\n')
          .map((line, n) => ({ line: line.trim(), place: `src/${path}:${n + 1}` }))
          .filter(({ line }) => OF_VENDORS.test(line))
          .map((one) => ({ ...one, allowed: Object.keys(ALLOWED[path] ?? {}).find((begin) => one.line.startsWith(begin)), path })),
      );
    expect(found.filter(({ allowed }) => allowed === undefined).map(({ place, line }) => `${place}: ${line}`)).toEqual([]);
    const used = new Set(found.map(({ path, allowed }) => `${path} ${allowed}`));
    const listed = Object.entries(ALLOWED).flatMap(([path, lines]) => Object.keys(lines).map((begin) => `${path} ${begin}`));
    expect(listed.filter((one) => !used.has(one))).toEqual([]);
  });

  it('has no circles, types counted', () => {
    const circles: string[] = [];
    const done = new Set<string>();
    const visit = (path: string, trail: readonly string[]): void => {
      const at = trail.indexOf(path);
      if (at >= 0) circles.push([...trail.slice(at), path].join(' -> '));
      if (at >= 0 || done.has(path)) return;
      for (const target of imports.get(path) ?? []) visit(target, [...trail, path]);
      done.add(path);
    };
    for (const path of files) visit(path, []);
    expect(circles).toEqual([]);
  });

  it('imports only files that exist', () => {
    const known = new Set(files);
    expect(
      [...imports].flatMap(([path, targets]) => targets.filter((target) => !known.has(target)).map((target) => `${path} -> ${target}`)),
    ).toEqual([]);
  });

  it('keeps nineteen of twenty files under 300 lines', () => {
    const sizes = files
      .filter((path) => top(path) !== 'generated')
      .map((path) => readFileSync(join('src', path), 'utf8').split('\n').length);
    expect(sizes.filter((size) => size > 300).length / Math.max(1, sizes.length)).toBeLessThanOrEqual(0.05);
  });
});

import { describe, expect, it } from 'vitest';
import { childrenOf, parseDocument, textAt } from '../../../src/probes/nvidia/smi/document.ts';
import { parseListing } from '../../../src/probes/nvidia/smi/source.ts';
import { documentText, gpuElement, gpuText } from './harness.ts';

function gpusIn(output: string): number {
  const { log } = parseDocument(output);
  return log === undefined ? -1 : childrenOf(log, 'gpu').length;
}

describe('the document in the output', () => {
  it('is found between other lines, which are kept', () => {
    const result = parseDocument(`before\n${documentText(gpuText())}after\nand more\n`);
    expect(result.surplus.split('\n').filter((line) => line !== '')).toEqual(['before', 'after', 'and more']);
    expect(result.log).toBeDefined();
  });

  it('is found without declaration, and with carriage returns', () => {
    expect(gpusIn('<nvidia_smi_log>\r\n<gpu id="0"><uuid>GPU-1</uuid></gpu>\r\n</nvidia_smi_log>\r\n')).toBe(1);
  });

  it('is refused where there are two, because a name can end the first one', () => {
    expect(gpusIn(documentText(gpuText()) + documentText(gpuText(), gpuText({ index: 1 })))).toBe(-1);
  });

  it.each([
    ['no output', '', 'no-document'],
    ['a table for people', '+---+\n| NVIDIA-SMI 525.85 |\n+---+\n', 'no-document'],
    ['an end in the middle', documentText(gpuText()).slice(0, -30), 'truncated'],
    ['a lost end tag', documentText('<gpu id="1"><uuid>GPU-1</uuid>', gpuText()), 'malformed'],
    ['tags in each other', '<nvidia_smi_log><a><b></a></b></nvidia_smi_log>', 'malformed'],
    ['an empty document', '<nvidia_smi_log></nvidia_smi_log>', 'malformed'],
    ['a document of text alone', '<nvidia_smi_log>N/A</nvidia_smi_log>', 'malformed'],
    ['bytes that are no text', `${'\uFFFD\0'.repeat(50)}`, 'no-document'],
  ])('%s is an error of its own', (_, output, error) => {
    expect(parseDocument(output).error).toBe(error);
  });

  it('has no supported clocks, however many there are', () => {
    const clocks = `<supported_clocks>${'<supported_mem_clock><value>9999 MHz</value></supported_mem_clock>'.repeat(10_000)}</supported_clocks>`;
    expect(gpuElement(`${clocks}<fan_speed>30 %</fan_speed>`)).toEqual({ '@id': '00000000:10:00.0', fan_speed: '30 %' });
  });

  it.each([
    'python -c "a < b && c > d"',
    '</processes></gpu>',
    '<gpu id="x">',
    '&',
    ']]>',
    '<!-- ',
    '<supported_clocks>',
    '</nvidia_smi_log>',
    '<process_name>',
    'x</process_name><used_memory>9 MiB</used_memory></process_info><process_info><pid>1</pid><process_name>y',
  ])('is not disturbed by a process named %j', (name) => {
    const processes = `<processes><process_info><pid>5</pid><process_name>${name}</process_name><used_memory>1 MiB</used_memory></process_info></processes>`;
    const gpus = childrenOf(parseDocument(documentText(gpuText({ extra: processes }), gpuText({ index: 1 }))).log ?? {}, 'gpu');
    expect(gpus).toHaveLength(2);
    expect(childrenOf(gpus[0] ?? {}, 'processes/process_info')).toEqual([{ pid: '5', used_memory: '1 MiB' }]);
  });

  it.each([
    ['a line break', 'a\nb'],
    ['a second GPU', 'a\n</process_name></process_info></processes></gpu>\n<gpu id="9"><processes><process_info><process_name>y'],
    [
      'a second GPU, on lines of its own',
      'a</process_name></process_info></processes></gpu>\n<gpu id="9"><processes><process_info>\n<process_name>y',
    ],
    [
      'another temperature',
      'a</process_name></process_info></processes>\n<fan_speed>99 %</fan_speed><processes><process_info>\n<process_name>y',
    ],
    ['other processes', 'a</process_name></process_info></processes>\n<processes><process_info><pid>5</pid>\n<process_name>y'],
  ])('is not believed at all where the name of a process forges %s', (_, name) => {
    const process = (pid: number, name: string): string =>
      `<process_info><pid>${pid}</pid>\n<process_name>${name}</process_name>\n</process_info>`;
    const gpu = gpuText({ extra: `<fan_speed>30 %</fan_speed><processes>${process(5, name)}${process(6, 'python')}</processes>` });
    const text = documentText(gpu).replace('<nvidia_smi_log>', '<nvidia_smi_log><attached_gpus>1</attached_gpus>');
    expect(parseDocument(text).error).toBe('malformed');
  });

  describe('of a node whose pods share GPUs, and choose the names of their processes', () => {
    const CLOCKS = '<supported_clocks><supported_mem_clock><value>9 MHz</value></supported_mem_clock></supported_clocks>';
    const entry = (pid: number, name: string): string =>
      `<process_info><pid>${pid}</pid>\n<process_name>${name}</process_name>\n<used_memory>1 MiB</used_memory></process_info>\n`;
    /** GPUs with one process each, in the order in which the driver prints their elements; clocks stand before processes. */
    const gpus = (...names: readonly string[][]): string[] =>
      names.map((own, index) =>
        gpuText({
          index,
          extra: `<fan_speed>30 %</fan_speed>${CLOCKS}<processes>${own.map((name, at) => entry(10 * (index + 1) + at, name)).join('')}</processes>`,
        }),
      );
    const output = (...names: readonly string[][]): string =>
      documentText(...gpus(...names)).replace('<nvidia_smi_log>', `<nvidia_smi_log><attached_gpus>${names.length}</attached_gpus>`);
    const END = 'a</process_name></process_info></processes>';
    const BEGIN = '<processes><process_info>\n<process_name>b';
    const FORGED = '<gpu id="00000000:11:00.0"><uuid>GPU-forged</uuid><fan_speed>99 %</fan_speed>';

    it('is read while the names are plain', () => {
      expect(gpusIn(output(['a'], ['b'], ['c']))).toBe(3);
    });

    it.each<[string, readonly string[][]]>([
      [
        'puts a GPU in place of the next one, whose elements are hidden as clocks',
        [[`${END}</gpu>${FORGED}<supported_clocks>\n<process_name>b`], ['x']],
      ],
      ['hides the further GPUs behind an end of the document', [[`${END}</gpu></nvidia_smi_log>\n<process_name>b`], ['x']]],
      [
        'hides them behind an end, and begins a second document',
        [[`${END}</gpu></nvidia_smi_log>\n<?xml version="1.0"?><nvidia_smi_log>\n<process_name>b`], ['x']],
      ],
      [
        'hides a GPU in a comment that a second process ends',
        [[`a</process_name>\n<!--\n<process_name>b`], ['x'], [`c</process_name>\n-->\n<process_name>d`]],
      ],
      [
        'puts forged GPUs in place of those in the comment',
        [[`${END}</gpu>${FORGED}</gpu><gpu id="3">${BEGIN.replace('\n', '<!--\n')}`], ['x'], [`c</process_name>\n-->\n<process_name>d`]],
      ],
      [
        'hides a GPU as character data',
        [[`a</process_name>\n<x><![CDATA[\n<process_name>b`], [`c</process_name>\n]]></x>\n<process_name>d`]],
      ],
      ['hides a GPU in an instruction', [[`a</process_name>\n<?x \n<process_name>b`], [`c</process_name>\n?>\n<process_name>d`]]],
      [
        'nests the next GPU in its own, and adds one of its own',
        [
          [`${END}<remapped_rows><remapped_row_pending>Yes</remapped_row_pending></remapped_rows><gpu id="1">${BEGIN}`],
          [`${END}</gpu></gpu>${FORGED}${BEGIN}`],
        ],
      ],
      ['adds a GPU without an address', [[`${END}</gpu><gpu><uuid>GPU-2</uuid>${BEGIN}`]]],
      [
        'hides the process of another holder in a comment',
        [['a</process_name>\n<!--\n<process_name>b', 'victim', 'c</process_name>\n-->\n<process_name>d']],
      ],
      [
        'hides it as clocks',
        [['a</process_name>\n<supported_clocks>\n<process_name>b', 'victim', 'c</process_name>\n</supported_clocks>\n<process_name>d']],
      ],
      [
        'adds an element that the GPU lacks',
        [[`${END}<remapped_rows><remapped_row_failure>Yes</remapped_row_failure></remapped_rows>${BEGIN}`]],
      ],
    ])('is refused where a name %s', (_, names) => {
      expect(parseDocument(output(...names)).error).toBe('malformed');
    });

    it.each([
      '\r',
      '\u0085',
      '\u2028',
      '\u2029',
      '\v',
      '\f',
      '\u001b[2J',
      '\u202e',
      '\0',
      'x'.repeat(1_000_000),
      '</process_info>',
      '&#10;',
    ])('is read whatever one line of a name has: %j', (name) => {
      expect(gpusIn(output([`a${name}b`], ['x']))).toBe(2);
    });

    it('gives no line of a name to those that look for lost GPUs and missing drivers', () => {
      const lines = ['Unable to determine the device handle for GPU 0000:11:00.0: GPU is lost.', 'No devices were found'].join('\n');
      const names = [`${END}</gpu></nvidia_smi_log>\n${lines}\n<process_name>b`];
      expect(parseDocument(output(names, ['x'])).surplus).not.toMatch(/lost|No devices/);
    });

    it('is refused or read in time where names are long', () => {
      const tags = '<process_name>'.repeat(100_000);
      expect(gpusIn(output([tags], [tags.replaceAll('<', '</')]))).toBe(2);
      expect(gpusIn(output([`${tags}\n`, '<a>'.repeat(300_000), `${'<a>'.repeat(300_000)}\n`]))).toBe(-1);
    });

    it('is read in time with 20,000 processes', () => {
      expect(gpusIn(output(Array.from({ length: 20_000 }, (_, at) => `worker ${at}`)))).toBe(1);
    });
  });

  it('may hold comments, and gives nothing for names that every object has', () => {
    const gpu = gpuElement('<!-- note --><fan_speed><!-- in here -->30 %</fan_speed>');
    expect(textAt(gpu, 'fan_speed')).toBe('30 %');
    expect(textAt(gpu, 'toString')).toBeUndefined();
    expect(textAt(gpu, 'fan_speed/hasOwnProperty')).toBeUndefined();
  });
});

describe('a path into an element', () => {
  const gpu = gpuElement(
    '<temperature><gpu_temp> 41 C </gpu_temp></temperature><remapped_rows>GPU is lost</remapped_rows><clocks>5 MHz</clocks><mig_devices>\nNone\n</mig_devices>',
  );

  it('leads to its text, or to nothing', () => {
    expect(textAt(gpu, 'temperature/gpu_temp')?.trim()).toBe('41 C');
    expect(textAt(gpu, 'temperature')).toBeUndefined();
    expect(textAt(gpu, 'temperature/memory_temp')).toBeUndefined();
    expect(textAt(gpu, 'voltage/graphics_volt')).toBeUndefined();
  });

  it('leads to the text that replaces a whole group, but never to a number', () => {
    expect(textAt(gpu, 'remapped_rows/remapped_row_corr')).toBe('GPU is lost');
    expect(textAt(gpu, 'clocks/sm_clock')).toBeUndefined();
  });

  it('finds no children when there is a text', () => {
    expect(childrenOf(gpu, 'mig_devices/mig_device')).toEqual([]);
    expect(childrenOf(gpu, 'remapped_rows/gpu')).toEqual([]);
  });
});

describe('the listing of -L', () => {
  it('names the instances below their GPU', () => {
    const text = `GPU 0: NVIDIA A100 (UUID: GPU-0000000a-0000-4000-8000-000000000000)
  MIG 1c.3g.71gb  Device  0: (UUID: MIG-0000000a-0000-5000-8000-000000000000)
  MIG 1g.10gb+me  Device 11: (UUID: MIG-GPU-0000000a-0000-4000-8000-000000000000/7/0)
GPU 1: NVIDIA A100 (UUID: GPU-0000000b-0000-4000-8000-000000000000)
  MIG 1g.24gb+me.all Device 0: (UUID: MIG-0000000b-0000-5000-8000-000000000000)
  MIG 1g.24gb+gfx Device  1: (UUID: MIG-0000000b-0000-5000-8000-000000000001)
  MIG 1g.12gb-me  Device  2: (UUID: MIG-0000000b-0000-5000-8000-000000000002)
GPU 2: no uuid at all
  MIG 1g.5gb      Device  0: (UUID: MIG-of-nobody)
`;
    expect([...parseListing(text)].map(([gpu, instances]) => [gpu, [...instances]])).toEqual([
      [
        'GPU-0000000a-0000-4000-8000-000000000000',
        [
          ['0', { uuid: 'MIG-0000000a-0000-5000-8000-000000000000', profile: '1c.3g.71gb' }],
          ['11', { uuid: 'MIG-GPU-0000000a-0000-4000-8000-000000000000/7/0', profile: '1g.10gb+me' }],
        ],
      ],
      [
        'GPU-0000000b-0000-4000-8000-000000000000',
        ['1g.24gb+me.all', '1g.24gb+gfx', '1g.12gb-me'].map((profile, at) => [
          `${at}`,
          { uuid: `MIG-0000000b-0000-5000-8000-00000000000${at}`, profile },
        ]),
      ],
    ]);
  });

  it.each(['', 'No devices were found', 'GPU is lost', '  MIG 1g.5gb Device 0: (UUID: MIG-1)'])('is empty for %j', (text) => {
    expect(parseListing(text).size).toBe(0);
  });
});

import type { GpuIdentity } from '../sample.ts';
import type { Library } from './library.ts';
import { type CallVariant, type Question, question } from './question.ts';

/** Texts that `nvidia-smi` prints for enumerations of nvml.h. */
const BRANDS = [
  undefined,
  'Quadro',
  'Tesla',
  'NVS',
  'GRID',
  'GeForce',
  'Titan',
  'NVIDIA Virtual Applications',
  'NVIDIA Virtual PC',
  'NVIDIA Virtual Compute Server',
  'NVIDIA RTX Virtual Workstation',
  'NVIDIA Cloud Gaming',
  'Quadro RTX',
  'NVIDIA RTX',
  'NVIDIA',
  'GeForce RTX',
  'Titan RTX',
];
const ARCHITECTURES: Readonly<Record<number, string>> = {
  2: 'Kepler',
  3: 'Maxwell',
  4: 'Pascal',
  5: 'Volta',
  6: 'Turing',
  7: 'Ampere',
  8: 'Ada Lovelace',
  9: 'Hopper',
  10: 'Blackwell',
  13: 'Rubin',
};
const COMPUTE_MODES = ['Default', 'Exclusive_Thread', 'Prohibited', 'Exclusive_Process'];

/** Questions about the identity of the board, which is constant for a handle. A failed call reports no unread value. */
export function identityQuestions(library: Library): readonly Question[] {
  const text = (symbol: string, key: keyof GpuIdentity, length: number): CallVariant => ({
    symbol,
    after: [length],
    parse: (out) => ({ identity: { [key]: out.text(0, length) } }),
  });
  const number = (symbol: string, key: keyof GpuIdentity, wordOf: (value: number) => string | undefined): CallVariant => ({
    symbol,
    parse: (out) => ({ identity: { [key]: wordOf(out.u32(0)) } }),
  });
  const once: readonly CallVariant[] = [
    text('nvmlDeviceGetName', 'name', 96),
    text('nvmlDeviceGetSerial', 'serial', 30),
    text('nvmlDeviceGetBoardPartNumber', 'boardPart', 80),
    text('nvmlDeviceGetVbiosVersion', 'vbios', 32),
    { ...text('nvmlDeviceGetGspFirmwareVersion', 'gspFirmware', 80), after: [] },
    number('nvmlDeviceGetMinorNumber', 'minor', String),
    number('nvmlDeviceGetModuleId', 'moduleId', String),
    number('nvmlDeviceGetBrand', 'brand', (brand) => BRANDS[brand]),
    number('nvmlDeviceGetArchitecture', 'architecture', (architecture) => ARCHITECTURES[architecture]),
  ];
  return [
    ...once.map((variant) => question(library, 'once', [], [variant])),
    question(library, 'facts', [], [number('nvmlDeviceGetComputeMode', 'computeMode', (mode) => COMPUTE_MODES[mode])]),
  ];
}

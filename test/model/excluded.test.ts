import { describe, expect, it } from 'vitest';
import { excludedOf, matchesAny } from '../../src/model/excluded.ts';

describe('a pattern of names', () => {
  it.each<[string, string[], string[]]>([
    ['mlx5_1', ['mlx5_1'], ['mlx5_10', 'xmlx5_1']],
    ['*', ['', 'a'], []],
    ['mlx5_*', ['mlx5_', 'mlx5_10'], ['mlx4_1']],
    ['*_1', ['mlx5_1', '_1'], ['mlx5_10', '1']],
    ['a*a', ['aa', 'aba'], ['a', 'ab']],
    ['0000:*:00.*', ['0000:3b:00.0', '0000:3b:00.12'], ['0000:3b:01.0']],
    ['a*b*c', ['abc', 'axbxc'], ['acb', 'ac']],
    ['a.c', ['a.c'], ['abc']],
  ])('%s matches %j and not %j', (pattern, fits, others) => {
    for (const name of fits) expect(matchesAny([pattern], name), name).toBe(true);
    for (const name of others) expect(matchesAny([pattern], name), name).toBe(false);
  });

  it('ends soon, however many stars it has', () => {
    expect(matchesAny([`${'a*'.repeat(5_000)}b`], 'a'.repeat(20_000))).toBe(false);
  });
});

describe('what device.exclude leaves out of a family', () => {
  it('is what names the family or none', () => {
    const patterns = ['nvme/nvme1', 'infiniband/mlx5_1', 'mlx5_2', '*/x0', 'n*/nvme2'];
    expect(excludedOf('infiniband', patterns)).toEqual(['mlx5_1', 'mlx5_2', 'x0']);
    expect(excludedOf('nvme', patterns)).toEqual(['nvme1', 'mlx5_2', 'x0', 'nvme2']);
  });
});

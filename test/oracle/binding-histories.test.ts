import { BindingLife, boundFamilies } from './binding-histories.ts';
import { judgeLives } from './lives.ts';

judgeLives(
  'a function of %s is what its driver, its node and the log say, over each change and each restart',
  boundFamilies.map(([name, family]) => [name, (choose) => new BindingLife(family, choose)] as const),
  12,
);

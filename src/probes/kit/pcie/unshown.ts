import type { FunctionOnBus } from '../../../host/pci/functions.ts';

/**
 * A function that its driver should show. `bound`: the driver is bound to it. `unbound`: no driver is, although the driver has a function
 * of the same model.
 */
export interface ExpectedFunction {
  readonly address: string;
  readonly state: 'bound' | 'unbound';
}

/**
 * The functions that a driver should show as devices, by what the bus tells. Not meant: functions of another driver, such as one for
 * virtual machines; functions for which an administrator chose another driver; virtual functions; and functions without a driver while the
 * driver has no function of their model, as before the driver is loaded, or on a card that it does not support.
 */
export function expectedFunctions(functions: readonly FunctionOnBus[], driver: string): readonly ExpectedFunction[] {
  const bound = functions.filter((each) => each.driver === driver && !each.isVirtual);
  const models = new Set(bound.map(({ model }) => model));
  return functions.flatMap((each): ExpectedFunction[] => {
    if (each.isVirtual) return [];
    if (each.driver === driver) return [{ address: each.address, state: 'bound' }];
    return mayGet(each, driver) && models.has(each.model) ? [{ address: each.address, state: 'unbound' }] : [];
  });
}

/** Functions that the driver has, or would have if it were loaded. */
export const functionsFor = (functions: readonly FunctionOnBus[], driver: string): readonly FunctionOnBus[] =>
  functions.filter((each) => !each.isVirtual && (each.driver === driver || mayGet(each, driver)));

const mayGet = ({ driver, wantedDriver = '' }: FunctionOnBus, wanted: string): boolean =>
  driver === undefined && (wantedDriver === '' || wantedDriver === wanted);

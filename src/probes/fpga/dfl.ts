import type { DeviceReport } from '../../model/collection.ts';
import { readPciFacts } from './board.ts';
import { type DflFunction, groupByBoard, type Unit } from './dfl-board.ts';
import { type CardRead, readDflCard } from './dfl-card.ts';
import { DFL, type Layout, OPAE } from './dfl-layout.ts';
import { readDflPort } from './dfl-port.ts';
import { placedIn, type Survey } from './survey.ts';

/** Reads all boards of both Intel drivers, with their ports. */
export function readDflBoards(survey: Survey): readonly DeviceReport[] {
  const functions = [...findFunctions(survey, OPAE), ...findFunctions(survey, DFL)];
  return groupByBoard(functions, (address) => readPciFacts(survey.host.sys, address).physicalFunction).flatMap((board) => {
    const card: CardRead = readDflCard(survey, board);
    const ports = board.ports.flatMap((port) => readDflPort(survey, board, port, card) ?? []);
    return [card.report, ...ports];
  });
}

/**
 * Finds the base regions, which have a management engine or a port. Regions for reconfiguration are in the same class directory, but
 * have neither.
 */
function findFunctions(survey: Survey, layout: Layout): readonly DflFunction[] {
  const { sys } = survey.host;
  return placedIn(sys, layout.classDirectory).flatMap((region) => {
    const names = sys.list(region.path);
    const units = (pattern: RegExp): readonly Unit[] =>
      names.filter((name) => pattern.test(name)).map((name) => ({ name, path: `${region.path}/${name}` }));
    const [engines, ports] = [units(layout.engine), units(layout.port)];
    if (engines.length === 0 && ports.length === 0) return [];
    if (region.address === undefined) {
      survey.problems.push({ code: 'address-unknown', message: `/sys/${layout.classDirectory}/${region.name} lies below no PCI function` });
      return [];
    }
    return [{ layout, address: region.address, engines, ports }];
  });
}

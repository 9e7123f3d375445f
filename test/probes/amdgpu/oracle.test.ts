import { judgeHistories } from '../../oracle/judge-histories.ts';
import { oracle } from './oracle.ts';

judgeHistories(oracle);

import { parentKey } from '../board/device-view.ts';
import { keepAges, useServerTime } from './ages.ts';
import { listenToKeys } from './keys.ts';
import { OverviewPage } from './overview.ts';
import { ReloadedPage } from './reload.ts';
import { type BoardEvent, followBoard } from './stream.ts';

/** Keeps a page live. Without this script the page is complete, too, but shows one moment. */
function begin(): void {
  const table = document.querySelector<HTMLTableElement>('#devices');
  const mode = document.body.dataset.live;
  const page = mode === 'board' && table !== null ? new OverviewPage(table) : new ReloadedPage(() => undefined);
  keepAges();
  if (mode === 'board') listenToKeys();
  say('Connecting …', 'waits');
  followBoard('/api/v1/devices/watch', {
    took: (event) => {
      useServerTime(Date.parse(event.kind === 'board' ? event.board.now : event.head.now));
      say('Live', 'live');
      if (page instanceof OverviewPage) page.took(event);
      else if (isAboutThisPage(event)) page.changed();
    },
    lost: (delayMs) =>
      say(
        `Not live: the agent does not answer. Next try in ${Math.ceil(delayMs / 1_000)} s. The page shows the last state that it got.`,
        'lost',
      ),
  });
}

/** The page of one device changes with the device and its parts; other pages with everything. */
function isAboutThisPage(event: BoardEvent): boolean {
  const [, kind, family, id] = location.pathname.split('/').map(decodeURIComponent);
  if (event.kind === 'board' || kind !== 'devices') return true;
  const key = `${family}/${id}`;
  return event.removed.includes(key) || event.devices.some((one) => one.key === key || parentKey(one) === key);
}

function say(words: string, state: 'live' | 'waits' | 'lost'): void {
  const element = document.getElementById('live');
  if (element === null) return;
  if (element.textContent !== words) element.textContent = words;
  element.dataset.state = state;
}

begin();

// The threads of the block with their registers, and the gate they meet at.

const WORSE = ['loaded', 'filled', 'silent', 'outside'];
const ROOMY = 58; // pixels of a thread that shows its name and a register
const WIDEST = 544; // of a block on a page that scrolls

function drawThreads(host, run, state, view, choose) {
  const columns = Math.min(run.wide, 32);
  const lines = Math.ceil(run.threads / columns);
  const frame = measured(host.parentElement);
  const size = Math.min((frame.width - 24) / columns, view.fixed ? Math.max(8, ((frame.height - 40) / lines) * 1.35) : Infinity);
  const roomy = size >= ROOMY;
  const busy = new Map();
  for (const { thread, how } of state.touched) {
    if (WORSE.indexOf(how) >= WORSE.indexOf(busy.get(thread))) busy.set(thread, how);
  }
  for (const use of state.used) busy.set(use.thread, 'using');
  for (const thread of state.arrived) busy.set(thread, 'waiting');
  const focus = host.contains(document.activeElement);
  const painted = !roomy && run.threads > MOST_CELLS;
  const tallest = view.fixed ? (frame.height - (painted ? 52 : 40)) / lines : WIDEST / columns;
  host.choose = choose;
  host.classList.toggle('tight', !roomy);
  host.classList.toggle('painted', painted);
  host.style.setProperty('--columns', columns);
  host.style.maxWidth = view.fixed && !roomy && !painted ? `${Math.min(frame.width - 24, tallest * columns)}px` : '';
  host.layout = null;
  if (painted) paintThreads(host, run, state, view.thread, busy, columns, lines, Math.max(4, Math.min((frame.width - 24) / columns, tallest)));
  else clear(host, threadButtons(host, run, state, view.thread, busy, roomy));
  if (focus) (painted ? host.querySelector('button') : host.children[view.thread])?.focus();
}

function threadButtons(host, run, state, mine, busy, roomy) {
  const known = (host.known ??= []);
  const sumsOf = registers(state);
  const noun = say('word.thread');
  const choices = (host.choices ??= Array.from({ length: run.threads }, (_, thread) => () => host.choose(thread)));
  return Array.from({ length: run.threads }, (_, thread) => {
    const sums = sumsOf.get(thread) ?? [];
    const chosen = thread === mine;
    const now = busy.get(thread) ?? 'idle';
    const shown = sums.length ? number(sums[0].value) : '–';
    const label = roomy || chosen ? describeThread(roomy ? `${run.threadLabel(thread)} ${shown}` : run.threadName(thread), now, sums) : `${noun} ${run.threadName(thread)}`;
    const key = `${now}|${chosen}|${roomy}|${label}`;
    if (known[thread]?.key !== key) {
      known[thread] = { key, part: part('button', {
        type: 'button', class: `thread ${now}`, tabindex: chosen ? 0 : -1, 'aria-pressed': String(chosen),
        'aria-label': label, 'data-thread': thread, onclick: choices[thread],
      },
      part('span', { class: 'who' }, roomy ? run.threadLabel(thread) : ''), roomy ? ' ' : '',
      part('span', { class: 'register' }, roomy ? shown : '')) };
    }
    return known[thread].part;
  });
}

// Many small threads on a canvas, the chosen one as a button: an element for each would take the browser most of a step.
function paintThreads(host, run, state, mine, busy, columns, lines, cell) {
  const at = (thread) => ({ x: (thread % columns) * cell, y: Math.floor(thread / columns) * cell });
  const kinds = onceDrawn(run, 'threads', [columns, cell], () => new Map());
  const of = (now) => {
    if (!kinds.has(now)) {
      const look = WORSE.includes(now) ? { how: now, now: true } : { ring: now };
      kinds.set(now, Array.from({ length: run.threads }, (_, thread) => ({ ...at(thread), ...look })));
    }
    return kinds.get(now);
  };
  const idle = onceDrawn(run, 'idle', [columns, cell], () => new Map(of('idle').map((one, thread) => [thread, one])));
  const over = new Map([...busy].map(([thread, now]) => [thread, of(now)[thread]]));
  host.layout = { at: { threads: [0, 0] }, cell };
  const size = [Math.ceil(columns * cell), Math.ceil(lines * cell), say('count.thread', { count: run.threads })];
  const { x, y } = at(mine);
  const sums = registers(state).get(mine) ?? [];
  layered(host, ...size, cell, { below: [], above: [] }, idle, over, part('button', {
    type: 'button', class: 'thread', 'aria-pressed': 'true', 'data-thread': mine, style: `left:${x}px;top:${y}px;width:${cell}px;height:${cell}px`,
    'aria-label': describeThread(run.threadName(mine), busy.get(mine) ?? 'idle', sums),
  }));
}

// The middle of a thread, in the window's coordinates.
function middleOf(host, thread, columns) {
  const { layout } = host;
  const one = layout ? host.querySelector('.layers') : host.children[thread];
  const frame = one?.getBoundingClientRect();
  if (!frame?.width) return null;
  if (!layout) return [frame.left + frame.width / 2, frame.top + frame.height / 2];
  return [frame.left + ((thread % columns) + 0.5) * layout.cell, frame.top + (Math.floor(thread / columns) + 0.5) * layout.cell];
}

// The registers of every thread that has one.
function registers(state) {
  const out = new Map();
  for (const [key, value] of state.sums) {
    const at = key.lastIndexOf('|');
    const thread = Number(key.slice(at + 1));
    out.set(thread, [...(out.get(thread) ?? []), { name: key.slice(0, at), value }]);
  }
  return out;
}

function describeThread(name, now, sums) {
  const register = sums.map((sum) => `${sum.name} = ${number(sum.value)}`).join(', ');
  return `${say('word.thread')} ${name}: ${say(`thread.${now}`)}${register ? `; ${register}` : ''}`;
}

// Arrow keys move the choice inside the grid.
function threadKey(event, run, view, choose) {
  const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -run.wide, ArrowDown: run.wide };
  const next = view.thread + (steps[event.key] ?? NaN);
  if (!(event.key in steps)) return;
  event.preventDefault();
  event.stopPropagation();
  if (next >= 0 && next < run.threads) choose(next);
}

// The gate: shut until every thread of the block has arrived.
function drawGate(host, run, blockNumber, state) {
  const frames = run.block(blockNumber).frames;
  const here = state.frame?.stage === 'barrier';
  const at = here ? state.index : frames.findIndex((f, i) => i > state.index && f.stage === 'barrier');
  if (at < 0) {
    clear(host, part('p', { class: 'note' }, say(frames.some((f) => f.stage === 'barrier') ? 'gate.nomore' : 'gate.none')));
    return;
  }
  const line = run.columns.line[frames[at].rows[0]];
  const arrived = new Set(run.schedule ? state.waiting : here ? state.arrived : []);
  const open = arrived.size === run.threads;
  const text = say(here ? (open ? 'gate.open' : 'gate.stuck') : 'gate.shut', {
    line, arrived: arrived.size, threads: run.threads,
  });
  const dot = Math.max(3, Math.min(11, 300 / run.threads / 1.6));
  const perRow = Math.min(run.threads, Math.floor(300 / (dot * 1.6)));
  const dots = Array.from({ length: run.threads }, (_, thread) => shape('circle', {
    cx: 8 + dot / 2 + (thread % perRow) * dot * 1.6, cy: 12 + Math.floor(thread / perRow) * dot * 1.6, r: dot / 2,
    class: arrived.has(thread) ? 'arrived' : 'away',
  }));
  const height = Math.max(44, 20 + Math.ceil(run.threads / perRow) * dot * 1.6);
  const posts = [box(322, 4, 6, height - 8, 'post'), box(396, 4, 6, height - 8, 'post')];
  const bar = open
    ? shape('path', { d: `M328 ${height / 2} L350 10`, class: 'bar open' })
    : shape('path', { d: `M328 ${height / 2} H396`, class: 'bar' });
  clear(host, picture(408, height, text, shape('g', {}, dots), ...posts, bar), part('p', { class: 'gate-text' }, text));
}

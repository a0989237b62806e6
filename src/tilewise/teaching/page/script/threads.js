// The threads of the block with their registers, and the gate they meet at.

function drawThreads(host, run, state, view, choose) {
  const columns = Math.min(run.wide, 32);
  const lines = Math.ceil(run.threads / columns);
  const frame = measured(host.parentElement);
  const size = Math.min((frame.width - 24) / columns, view.fixed ? Math.max(8, ((frame.height - 40) / lines) * 1.35) : Infinity);
  const roomy = size >= 58;
  const busy = new Map();
  const worse = ['loaded', 'filled', 'silent', 'outside'];
  for (const { thread, how } of state.touched) {
    if (worse.indexOf(how) >= worse.indexOf(busy.get(thread))) busy.set(thread, how);
  }
  for (const use of state.used) busy.set(use.thread, 'using');
  for (const thread of state.arrived) busy.set(thread, 'waiting');
  const focus = host.contains(document.activeElement);
  const buttons = [];
  const known = (host.known ??= []);
  const sumsOf = registers(state);
  const noun = say('word.thread');
  const choices = (host.choices ??= Array.from({ length: run.threads }, (_, thread) => () => choose(thread)));
  for (let thread = 0; thread < run.threads; thread++) {
    const name = (run.threadNames ??= Array.from({ length: run.threads }, (_, t) => run.threadName(t)))[thread];
    const sums = sumsOf.get(thread) ?? [];
    const chosen = thread === view.thread;
    const now = busy.get(thread) ?? 'idle';
    const shown = sums.length ? number(sums[0].value) : '–';
    const label = roomy || chosen ? describeThread(roomy ? `${run.threadLabel(thread)} ${shown}` : name, now, sums) : `${noun} ${name}`;
    const key = `${now}|${chosen}|${roomy}|${label}`;
    if (known[thread]?.key !== key) {
      known[thread] = { key, part: part('button', {
        type: 'button', class: `thread ${now}`, tabindex: chosen ? 0 : -1, 'aria-pressed': String(chosen),
        'aria-label': label, 'data-thread': thread, onclick: choices[thread],
      },
      part('span', { class: 'who' }, roomy ? run.threadLabel(thread) : ''), roomy ? ' ' : '',
      part('span', { class: 'register' }, roomy ? shown : '')) };
    }
    buttons.push(known[thread].part);
  }
  host.style.setProperty('--columns', columns);
  host.classList.toggle('tight', !roomy);
  host.style.maxWidth = view.fixed && !roomy ? `${Math.min(frame.width - 24, (frame.height - 40) / lines * columns)}px` : '';
  clear(host, buttons);
  if (focus) host.children[view.thread]?.focus();
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

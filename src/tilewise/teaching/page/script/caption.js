// Captions: one title, a few sentences, and what the chosen thread does, for every state.

function captionOf(run, blockNumber, state, thread) {
  const block = run.blockName(blockNumber);
  const phase = state.frame?.phase;
  const threads = run.threads;
  if (!state.frame) {
    const { rows, cols } = run.block(blockNumber).geometry.strips;
    const values = { block, threads: say('count.thread', { count: threads }), phases: say('count.phase', { count: run.trace.counters.phases }) };
    return {
      title: say('start.title', { block }),
      text: [say('start.text', { ...values, rows: span('row', rows, run.matrices.P?.rows), cols: span('column', cols, run.matrices.P?.cols) }), say('start.how')],
      kinds: [], mine: '',
    };
  }
  if (run.schedule) return aloneCaption(run, run.block(blockNumber), state, { block, phase });
  const made = { load: loadCaption, use: useCaption, barrier: barrierCaption, store: storeCaption }[state.frame.stage];
  return { kinds: [], mine: '', ...made(run, run.block(blockNumber), state, thread, { block, phase, threads }) };
}

// "column 2", "rows 0–1", limited to P: the tile may extend past it.
function span(what, strip, end) {
  if (!strip) return say(`count.${what}`, { count: 2, list: '?' });
  const last = Math.min(strip[0] + strip[1], end ?? Infinity) - 1;
  const [count, list] = last <= strip[0] ? [1, strip[0]] : [2, `${strip[0]}–${last}`];
  return say(`count.${what}`, { count, list });
}

// In the order that fails one thread (or warp) runs at a time, up to its next barrier.
function aloneCaption(run, block, state, values) {
  const { stage, rows } = state.frame;
  const thread = run.columns.thread[rows[0]];
  const line = run.columns.line[rows[0]];
  const who = run.threadName(thread);
  const own = { touched: state.touched, used: state.used, summed: state.summed };
  const stale = state.used.map((u) => ({ u, held: state.shared[u.name]?.get(String(u.cell)) }))
    .find(({ u, held }) => !held || held.phase !== state.frame.phase);
  const text = [say(`alone.${stage}`, { ...values, thread: who, line })];
  if (stage === 'use' && stale) {
    const cell = cellName(stale.u.name, stale.u.cell);
    text.push(stale.held ? say(stale.held.phase > state.frame.phase ? 'alone.early' : 'alone.stale', { cell, value: number(stale.u.value), phase: stale.held.phase, writer: run.threadName(stale.held.thread) })
      : say('alone.empty', { cell }));
  }
  if (stage === 'barrier') text.push(say('barrier.text', { threads: run.threads, arrived: state.waiting.size }));
  const bad = stage === 'store' && own.touched.find((a) => a.reached && wrongCells(run).has(String(a.reached)));
  if (bad) text.push(say('alone.wrong', { cell: cellName(bad.array, bad.reached), value: number(bad.value) }));
  return { title: say('alone.title', { ...values, thread: who, line }), text, kinds: [], mine: say('mine', { thread: who, does: aloneDoes(run, state, thread) }) };
}

function aloneDoes(run, state, thread) {
  const sum = state.summed.at(-1);
  const operands = state.used.map((u) => `${cellName(u.name, u.cell)} = ${number(u.value)}`);
  if (operands.length) return say(sum ? 'use.mine' : 'use.reads', { operands: operands.join(', '), register: sum?.name, sum: number(sum?.value) });
  return mineOf(run, state, thread);
}

function loadCaption(run, block, state, thread, values) {
  const target = state.touched.find((a) => a.target)?.target ?? '?';
  const array = block.geometry.feeds[target] ?? '?';
  const text = [say('load.text', { ...values, array, target })];
  const again = state.touched.some((a) => a.put && state.shared[a.target]?.get(String(a.put))?.former !== undefined);
  if (again) text.push(say('load.again', { target }));
  return {
    title: say('load.title', { ...values, array, target }), text,
    kinds: kindLines(run, state.touched, array),
    mine: say('mine', { thread: run.threadName(thread), does: mineOf(run, state, thread) }),
  };
}

function mineOf(run, state, thread) {
  const own = state.touched.filter((a) => a.thread === thread).map((a) => describeAccess(run, a, true));
  return own.length ? own.join('; ') : say('thread.idle');
}

// One line per kind, with its threads; the CSS classes give the colours.
function kindLines(run, touched, array) {
  const lines = [];
  for (const how of ['loaded', 'filled', 'silent', 'outside']) {
    const those = touched.filter((a) => a.how === how);
    if (!those.length) continue;
    const store = those[0].store;
    const items = those.map((a) => {
      const who = run.threadName(a.thread);
      if (how === 'filled') return who;
      if (how === 'silent') return `${who} ${cellName(a.array, a.requested)} → ${cellName(a.array, a.reached)}`;
      return `${who} ${cellName(a.array, a.requested)}`;
    });
    const key = store ? `stored.${how}` : `kinds.${how}`;
    lines.push({ how, text: say(key, { list: list(items), array: array || [...new Set(those.map((a) => a.array))].join(', '), value: number(those[0].value), count: those.length }) });
  }
  return lines;
}

function useCaption(run, block, state, thread, values) {
  const own = state.used.filter((u) => u.thread === thread);
  const bare = state.touched.filter((a) => a.thread === thread && !a.target && !a.store);
  const sum = state.summed.filter((s) => s.thread === thread).at(-1);
  const operands = [
    ...own.map((u) => `${cellName(u.name, u.cell)} = ${number(u.value)}`),
    ...bare.map((a) => `${cellName(a.array, a.requested)} = ${number(a.value)}`),
  ];
  const inPhase = block.frames.filter((f) => f.stage === 'use' && f.phase === values.phase);
  const step = inPhase.indexOf(state.frame) + 1;
  const key = state.used.length ? 'use' : 'direct';
  const spoiled = own.map((u) => state.shared[u.name]?.get(String(u.cell))).find((h) => h && (h.how === 'silent' || h.how === 'outside'));
  const padded = own.map((u) => state.shared[u.name]?.get(String(u.cell))).find((h) => h && h.how === 'filled');
  const text = [say(`${key}.text`, values)];
  if (spoiled) text.push(say('use.spoiled', { thread: run.threadName(thread) }));
  else if (padded) text.push(say('use.padded', { value: number(padded.value) }));
  const does = operands.length
    ? say(sum ? 'use.mine' : 'use.reads', { operands: operands.join(', '), register: sum?.name, sum: number(sum?.value) })
    : say('thread.idle');
  return {
    title: say(`${key}.title`, { ...values, step, steps: inPhase.length }), text,
    kinds: key === 'direct' ? kindLines(run, state.touched, '') : [],
    mine: say('mine', { thread: run.threadName(thread), does }),
  };
}

function barrierCaption(run, block, state, thread, values) {
  const before = block.frames.slice(0, state.index).reverse().find((f) => f.stage !== 'barrier');
  const line = run.columns.line[state.frame.rows[0]];
  const arrived = state.arrived.length;
  const text = [say('barrier.text', { ...values, line, arrived })];
  if (arrived < run.threads) text.push(say('barrier.stuck', { ...values, arrived, missing: run.threads - arrived }));
  else if (before?.stage === 'load') text.push(say('barrier.loaded', values));
  else if (before?.stage === 'use') text.push(say('barrier.used', values));
  return { title: say('barrier.title', { ...values, line }), text };
}

function storeCaption(run, block, state, thread, values) {
  const array = state.touched[0]?.array ?? 'P';
  const busy = new Set(state.touched.map((a) => a.thread));
  const idle = Array.from({ length: run.threads }, (_, t) => t).filter((t) => !busy.has(t)).map((t) => run.threadName(t));
  const text = [say('store.text', { ...values, array })];
  if (idle.length) text.push(say('store.idle', { array, list: list(idle) }));
  return {
    title: say('store.title', { ...values, array }), text,
    kinds: kindLines(run, state.touched, array),
    mine: say('mine', { thread: run.threadName(thread), does: mineOf(run, state, thread) }),
  };
}

// One access as text; `brief` leaves out the thread.
function describeAccess(run, a, brief = false) {
  const values = {
    thread: run.threadName(a.thread), asked: cellName(a.array, a.requested), value: number(a.value),
    reached: a.reached ? cellName(a.array, a.reached) : '', target: a.put ? cellName(a.target, a.put) : '',
  };
  const key = a.store ? `did.store.${a.how}` : a.how === 'filled' ? 'did.filled' : `did.${a.how}${a.put ? '' : '.bare'}`;
  const does = say(key, values);
  return brief ? does : say('mine', { thread: values.thread, does });
}

function describeMatrices(run, state, geometry) {
  const parts = ['M', 'N', 'P'].map((role) => `${run.matrices[role].name} ${run.matrices[role].rows}×${run.matrices[role].cols}`);
  const tiles = Object.entries(geometry.tiles).map(([array, byPhase]) => {
    const origin = state.frame && byPhase[state.frame.phase];
    return origin ? say('aria.tile', { array, row: origin[0], col: origin[1] }) : '';
  });
  return [parts.join(', '), ...tiles.filter(Boolean)].join('. ');
}

function describeShared(run, state, names) {
  return names.map((name) => {
    const cells = state.shared[name];
    if (!cells) return say('aria.empty', { name });
    return `${name}: ${list([...cells].map(([key, held]) => `[${key}] ${number(held.value)}`), 16)}`;
  }).join('. ');
}

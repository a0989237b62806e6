// Counters: this block so far, this block in all, and the whole grid as the emulator counted it.

function countsOf(run, blockNumber) {
  run.totals ??= new Map();
  if (!run.totals.has(blockNumber)) {
    const frames = run.block(blockNumber).frames;
    const state = stateAt(run, blockNumber, frames.length - 1);
    const k = run.trace.shape ? run.trace.shape[1] : 0;
    const P = run.matrices.P;
    let own = 0;
    for (const frame of frames) {
      for (const i of frame.rows) {
        const a = run.access(i);
        if (a?.store && P && a.array === P.name && inside(P, a.requested)) own += 1;
      }
    }
    run.totals.set(blockNumber, { ...state.counts, without: own * 2 * k });
  }
  return run.totals.get(blockNumber);
}

function drawCounters(host, run, blockNumber, state) {
  const whole = countsOf(run, blockNumber);
  const grid = run.trace.counters;
  const gridWithout = grid['loads without tiles'];
  const rows = [
    ['loads', state.counts.loads, whole.loads, grid.loads],
    ['without', '', whole.without, gridWithout ?? ''],
    ['fills', state.counts.fills, whole.fills, grid.fills],
    ['uses', state.counts.uses, whole.uses, grid.uses],
    ['stores', state.counts.stores, whole.stores, grid.stores],
    ['barriers', state.counts.barriers, whole.barriers, grid.barriers],
  ];
  const head = part('tr', {}, part('th', { scope: 'col' }, say('counters.what')),
    ...['sofar', 'block', 'grid'].map((key) => part('th', { scope: 'col' }, say(`counters.${key}`))));
  const body = rows.map(([key, ...numbers]) => part('tr', {},
    part('th', { scope: 'row' }, say(`counters.${key}`)),
    numbers.map((value, i) => part('td', { 'data-counter': key, 'data-scope': ['sofar', 'block', 'grid'][i] }, String(value)))));
  clear(host,
    part('table', {}, part('thead', {}, head), part('tbody', {}, body)),
    part('p', { class: 'ratio' }, traffic(run)), reuse(run, whole));
}

// Loads without tiles ÷ loads: TILE_WIDTH, where no tile sticks out.
function traffic(run) {
  const { loads, 'loads without tiles': without } = run.trace.counters;
  if (!without || !loads) return '';
  if (without <= loads) return say('counters.nothing', { without, loads });
  const ratio = number(without / loads);
  return say('counters.traffic', { without, loads, ratio, tile: run.trace.tile ?? '?' });
}

function reuse(run, whole) {
  const put = whole.loads + whole.fills;
  if (!whole.uses || !put) return null;
  return part('p', { class: 'ratio' }, say('counters.reuse', { uses: whole.uses, put, ratio: number(whole.uses / put) }));
}

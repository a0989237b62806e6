// What a block holds after any of its frames, replayed from the events alone. Frame -1 is before the first.

function stateAt(run, blockNumber, index) {
  const block = run.block(blockNumber);
  const state = {
    index, frame: block.frames[index] ?? null,
    shared: {}, sums: new Map(), stored: new Map(),
    touched: [], used: [], summed: [], arrived: [], inPhase: [],
    waiting: new Set(), // at the barrier, where threads arrive one at a time
    counts: { loads: 0, fills: 0, stores: 0, uses: 0, barriers: 0 },
  };
  for (let f = 0; f <= index; f++) applyFrame(run, state, block.frames[f], f === index);
  return state;
}

function applyFrame(run, state, frame, current) {
  const c = run.columns;
  if (frame.stage === 'barrier') state.counts.barriers += 1;
  else if (state.waiting.size === run.threads) state.waiting.clear();
  for (const i of frame.rows) {
    const thread = c.thread[i];
    const name = run.names[c.array[i]];
    if (c.kind[i] === KIND.SUM) {
      state.sums.set(`${name}|${thread}`, c.value[i]);
      if (current) state.summed.push({ thread, name, value: c.value[i], line: c.line[i] });
    } else if (c.kind[i] === KIND.BARRIER) {
      if (frame.stage === 'barrier') state.waiting.add(thread);
      if (current) state.arrived.push(thread);
    } else if (c.kind[i] === KIND.USE) {
      state.counts.uses += 1;
      if (current) state.used.push({ thread, name, cell: [c.row[i], c.col[i]], value: c.value[i], line: c.line[i] });
    } else {
      place(state, run.access(i), current, frame.phase);
    }
  }
}

function place(state, access, current, phase) {
  const thisPhase = phase === state.frame.phase;
  if (current) state.touched.push(access);
  if (thisPhase && (access.target || current)) state.inPhase.push(access);
  if (access.store) {
    state.counts.stores += 1;
    if (access.reached) state.stored.set(String(access.reached), access);
    return;
  }
  state.counts[access.how === 'filled' ? 'fills' : 'loads'] += 1;
  if (!access.put) return;
  const cells = (state.shared[access.target] ??= new Map());
  const key = String(access.put);
  const before = cells.get(key);
  cells.set(key, {
    value: access.value, thread: access.thread, how: access.how, phase,
    origin: access.array ? access : null, former: before ? before.value : undefined,
  });
}

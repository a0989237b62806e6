// The state of a block after any of its frames, replayed from the events alone. Frame -1 is before the first.

// One step on continues from the state before; any other step is replayed from the start.
function stateAt(run, blockNumber, index) {
  const block = run.block(blockNumber);
  let { latest: state } = block;
  if (!state || state.index > index) {
    state = {
      index: -1, frame: null, shared: {}, sums: new Map(), stored: new Map(),
      touched: [], used: [], summed: [], arrived: [], inPhase: [],
      waiting: new Set(), // at the barrier, where threads arrive one at a time
      counts: { loads: 0, direct: 0, fills: 0, stores: 0, uses: 0, barriers: 0 },
    };
  } else if (state.index === index) return state;
  else state = {
    ...state, counts: { ...state.counts }, sums: new Map(state.sums), stored: new Map(state.stored), waiting: new Set(state.waiting),
    shared: Object.fromEntries(Object.entries(state.shared).map(([name, cells]) => [name, new Map(cells)])),
  };
  while (state.index < index) applyFrame(run, state, block.frames[state.index + 1], state.index + 1 === index);
  block.latest = state;
  return state;
}

function applyFrame(run, state, frame, current) {
  const c = run.columns;
  state.inPhase = frame.phase === state.frame?.phase ? state.inPhase.filter((access) => access.target) : [];
  Object.assign(state, { index: state.index + 1, frame, touched: [], used: [], summed: [], arrived: [] });
  if (frame.stage === 'barrier') state.counts.barriers += 1;
  else if (state.waiting.size === run.threads) state.waiting.clear();
  state.counts.uses += frame.uses;
  for (const i of current ? frame.rows : frame.kept) {
    const thread = c.thread[i];
    const name = run.names[c.array[i]];
    if (c.kind[i] === KIND.SUM) {
      state.sums.set(`${name}|${thread}`, c.value[i]);
      if (current) state.summed.push({ thread, name, value: c.value[i], line: c.line[i] });
    } else if (c.kind[i] === KIND.BARRIER) {
      if (frame.stage === 'barrier') state.waiting.add(thread);
      if (current) state.arrived.push(thread);
    } else if (c.kind[i] === KIND.USE) {
      state.used.push({ thread, name, cell: [c.row[i], c.col[i]], value: c.value[i], line: c.line[i] });
    } else {
      place(state, run.access(i), current, frame.phase);
    }
  }
}

function place(state, access, current, phase) {
  if (current) state.touched.push(access);
  if (access.target || current) state.inPhase.push(access);
  if (access.store) {
    state.counts.stores += 1;
    if (access.reached) state.stored.set(String(access.reached), access);
    return;
  }
  state.counts[access.how === 'filled' ? 'fills' : 'loads'] += 1;
  if (!access.put) { state.counts.direct += 1; return; }
  const cells = (state.shared[access.target] ??= new Map());
  const key = String(access.put);
  const before = cells.get(key);
  cells.set(key, {
    value: access.value, thread: access.thread, how: access.how, phase,
    origin: access.array ? access : null, former: before ? before.value : undefined,
  });
}

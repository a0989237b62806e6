// Warps at memory: which sectors of 32 bytes a warp's loads and stores fall into, and which banks its shared reads.

const LANES = 32; const SECTOR = 32; const BANKS = 32;

const elementBytes = (run) => (run.trace.binding.some((line) => /double|int64|long long/.test(line)) ? 8
  : run.trace.binding.some((line) => /half|bfloat/.test(line)) ? 2 : 4);

// The accesses of this frame, by array and kind, each as [{lane, word}] for every warp.
function requestsOf(run, state) {
  const groups = new Map();
  const note = (kind, name, thread, word, line) => {
    const key = `${kind}|${name}|${line}`;
    if (!groups.has(key)) groups.set(key, { kind, name, warps: new Map() });
    const { warps } = groups.get(key);
    const warp = Math.floor(thread / LANES);
    if (!warps.has(warp)) warps.set(warp, []);
    warps.get(warp).push({ lane: thread % LANES, word });
  };
  for (const a of state.touched) {
    const matrix = a.array && run.matrices[run.roles[a.array]];
    if (matrix && a.reached) note(a.store ? 'store' : 'load', a.array, a.thread, a.reached[0] * matrix.cols + a.reached[1], a.line);
  }
  for (const u of state.used) {
    const wide = run.trace.shared?.[u.name]?.at(-1) ?? run.block(app.panes[0].block).geometry.sizes[u.name]?.[1] ?? 1;
    note('use', u.name, u.thread, u.cell[0] * wide + u.cell[1], u.line);
  }
  return [...groups.values()];
}

function drawWarps(run, blockNumber, state) {
  const requests = requestsOf(run, state);
  if (!requests.length) return part('p', { class: 'note' }, say('warps.none'));
  return [part('div', { class: 'warps' }, requests.slice(0, 3).map((request) => drawRequest(run, request))),
    part('p', { class: 'note' }, say(requests.some((r) => r.kind === 'use') ? 'warps.banks' : 'warps.sectors'))];
}

// One row of lanes above, the sectors or banks they reach below, a line for each; a place reached twice is red.
function drawRequest(run, { kind, name, warps }) {
  const [warp, requests] = [...warps.entries()][0];
  const bytes = elementBytes(run);
  const shared = kind === 'use';
  const per = shared ? 1 : SECTOR / bytes;
  const places = shared
    ? Array.from({ length: BANKS }, (_, bank) => bank)
    : [...new Set(requests.map((a) => Math.floor(a.word / per)))].sort((a, b) => a - b);
  const placeOf = (a) => (shared ? ((a.word * bytes) / 4) % BANKS : places.indexOf(Math.floor(a.word / per)));
  const elements = new Map();
  for (const a of requests) elements.set(placeOf(a), (elements.get(placeOf(a)) ?? new Set()).add(a.word));
  const passes = Math.max(...[...elements.values()].map((set) => set.size));
  const width = 330; const lane = width / LANES; const step = width / Math.max(1, places.length);
  const busy = new Set(requests.map((a) => a.lane));
  const lanes = Array.from({ length: LANES }, (_, i) => box(i * lane + 0.7, 2, lane - 1.4, 10, busy.has(i) ? 'lane busy' : 'lane'));
  const lines = requests.map((a) => shape('path', {
    d: `M${(a.lane + 0.5) * lane} 13 L${(placeOf(a) + 0.5) * step} 33`, class: shared && elements.get(placeOf(a)).size > 1 ? 'wire bad' : 'wire',
  }));
  const boxes = places.map((_, i) => box(i * step + 0.7, 34, Math.min(step, width) - 1.4, 11,
    `place ${elements.has(i) ? (shared && elements.get(i).size > 1 ? 'bad' : 'busy') : ''}`));
  const least = shared ? 1 : Math.ceil(new Set(requests.map((a) => a.word)).size / per);
  const count = shared ? passes : places.length;
  const text = say(shared ? 'warps.use' : `warps.${kind}`, { name, warp, lanes: busy.size, count, least });
  return part('figure', { class: `request ${count > least ? 'dear' : 'cheap'}`, 'data-request': kind, 'data-count': count, 'data-least': least },
    part('figcaption', {}, text), picture(width, 47, text, ...lines, ...lanes, ...boxes));
}

// Global memory: N above, M to the left, P where a row of M meets a column of N, as on the board.

// The drawn extent of each matrix: its own, and cells outside that any thread of the run requested.
function extents(run) {
  run.extents ??= (() => {
    const size = {};
    for (const [role, m] of Object.entries(run.matrices)) size[role] = { rows: m.rows, cols: m.cols };
    for (const number of run.outermost ?? run.trace.blocks) {
      const { extent, tiles, feeds, sizes } = run.block(number).geometry;
      for (const [array, e] of Object.entries(extent)) grow(size[run.roles[array]], e.rows, e.cols);
      for (const [shared, array] of Object.entries(feeds)) {
        for (const origin of Object.values(tiles[array])) {
          grow(size[run.roles[array]], origin[0] + sizes[shared][0], origin[1] + sizes[shared][1]);
        }
      }
    }
    const rows = Math.max(size.M.rows, size.P.rows);
    const cols = Math.max(size.N.cols, size.P.cols);
    return { rows, cols, left: size.M.cols, above: size.N.rows };
  })();
  return run.extents;
}

function grow(size, rows, cols) {
  if (!size) return;
  const most = 2 * Math.max(size.rows, size.cols) + 32; // limits the picture for an index far outside
  size.rows = Math.max(size.rows, Math.min(rows, most));
  size.cols = Math.max(size.cols, Math.min(cols, most));
}

function drawMatrices(host, run, blockNumber, state, view) {
  if (!['M', 'N', 'P'].every((role) => run.matrices[role])) {
    clear(host, part('p', { class: 'note' }, say('matrices.none')));
    return;
  }
  const { rows, cols, left, above } = extents(run);
  const label = 22; const gap = 30;
  const frame = measured(host);
  const room = Math.max(160, frame.width - label - gap - 6);
  const tall = Math.max(60, frame.high - label - gap - 6);
  const cell = Math.min(view.lecture ? 96 : 60, room / (left + cols), tall / (above + rows)) * view.zoom;
  const at = {
    M: [label, label + above * cell + gap], N: [label + left * cell + gap, label],
    P: [label + left * cell + gap, label + above * cell + gap],
  };
  const width = label + (left + cols) * cell + gap + 4;
  const height = label + (above + rows) * cell + gap + 4;
  const geometry = run.block(blockNumber).geometry;
  const now = new Set(state.touched);
  const accesses = state.inPhase.map((a) => inMatrix(run, geometry, state, a));
  const scene = { run, state, geometry, cell, now, accesses, blockNumber, thread: view.thread, pointed: host.pointed, done: view.lecture ? storedBefore(run, blockNumber) : new Map() };
  host.layout = { at, cell };
  const many = Object.values(run.matrices).reduce((sum, m) => sum + m.rows * m.cols, 0) > 3 * MOST_CELLS;
  if (many) scene.over = new Map();
  const parts = ['N', 'M', 'P'].map((role) => drawMatrix(role, at[role], scene));
  const layers = Object.fromEntries(['below', 'cells', 'above'].map((layer) => [layer, parts.map((one) => shape('g', { class: `matrix ${one.role}` }, one[layer]))]));
  const size = [Math.ceil(width), Math.ceil(height), describeMatrices(run, state, geometry)];
  if (many) layered(host, ...size, cell, layers, unchanged(at, scene), scene.over);
  else clear(host, picture(...size, layers.below, layers.cells, layers.above));
  if (view.zoom > 1) bringIntoView(host, scene, at);
}

// A zoomed picture is larger than its frame: the frame moves to what is touched now, else to the block's part of P.
function bringIntoView(host, { run, state, geometry, cell }, at) {
  const { rows, cols } = geometry.strips;
  const spots = state.touched.map((a) => inMatrix(run, geometry, state, a)).filter((t) => run.roles[t.array])
    .map((t) => [at[run.roles[t.array]], t.requested]);
  if (!spots.length) spots.push([at.P, [rows?.[0] ?? 0, cols?.[0] ?? 0]]);
  const middle = (axis) => spots.reduce((sum, [corner, cellAt]) => sum + corner[axis] + (cellAt[1 - axis] + 0.5) * cell, 0) / spots.length;
  host.scrollLeft = middle(0) - host.clientWidth / 2;
  host.scrollTop = middle(1) - host.clientHeight / 2;
}

function drawMatrix(role, [x, y], scene) {
  const { run, cell, now } = scene;
  const matrix = run.matrices[role];
  const put = ([row, col]) => [x + col * cell, y + row * cell];
  const touched = scene.accesses.filter((t) => t.array === matrix.name);
  const middle = ([a, b]) => [a + cell / 2, b + cell / 2];
  const arrows = touched.filter((t) => t.access.how === 'silent' && now.has(t.access)).map((t) => {
    const [ex, ey] = put(t.access.reached);
    return arrow(middle(put(t.requested)), [ex + 0.8 * cell, ey + 0.2 * cell]);
  });
  return {
    role,
    below: [
      box(x, y, matrix.cols * cell, matrix.rows * cell, 'ground'), shape('g', {}, strips(role, matrix, put, scene)),
      onceDrawn(run, `grid|${role}`, [x, y, cell], () => gridLines(x, y, matrix, cell)),
    ],
    cells: scene.over ? paintMarks(role, matrix, put, touched, scene) : [
      shape('g', {}, drawMarks(matrix, put, touched, scene)),
      role === 'P' ? shape('g', {}, earlierSums(matrix, put, scene), sums(scene.state.stored, true, matrix, put, scene))
        : onceDrawn(run, `values|${role}`, [x, y, cell], () => shape('g', {}, operandValues(matrix, put, cell))),
    ],
    above: [
      shape('g', {}, rings(matrix, put, scene), outlines(role, matrix, put, scene), arrows),
      shape('text', { x, y: y - 8, class: 'name' }, `${matrix.name}  ${matrix.rows}×${matrix.cols}`),
      shape('g', {}, threadLine(role, matrix, put, scene), pointedAt(role, put, scene)),
    ],
  };
}

const ofMatrices = (run) => Object.fromEntries(Object.entries(run.matrices).map(([role, m]) => [role, [m.rows, m.cols]]));

// What this step shows in cells of a matrix: marks, and in P what the block has stored.
function paintMarks(role, matrix, put, touched, { run, state, cell, now, over }) {
  const at = (spot) => { const [x, y] = put(spot); return { x, y, size: cell }; };
  for (const { requested, access } of touched) {
    const [known, fresh, spot] = [access.mark, now.has(access), at(requested)];
    if (known?.now !== fresh || known.x !== spot.x || known.y !== spot.y || known.size !== cell) {
      const there = inside(matrix, requested);
      const text = there && role !== 'P' ? number(matrix.values[requested[0] * matrix.cols + requested[1]]) : undefined;
      access.mark = { ...spot, how: access.how, now: fresh, ghost: !there, text };
    }
    over.set(`${role}${requested}`, access.mark);
  }
  if (role !== 'P') return null;
  const wrong = wrongCells(run);
  for (const [key, store] of state.stored) {
    const one = over.get(`P${key}`) ?? at(key.split(',').map(Number));
    over.set(`P${key}`, { ...one, text: number(store.value), tone: wrong.has(key) ? 'bad' : 'own' });
  }
  return null;
}

// The cells as they are without a step: M, N, and what earlier blocks have left in P.
function unchanged(at, { run, cell, done, blockNumber }) {
  return onceDrawn(run, 'unchanged', [Object.values(at), cell, blockNumber, done.size], () => {
    const base = new Map();
    const add = (role, row, col, more) => base.set(`${role}${row},${col}`, { x: at[role][0] + col * cell, y: at[role][1] + row * cell, ...more });
    for (const role of ['M', 'N']) {
      const { cols, values } = run.matrices[role];
      values.forEach((value, i) => { if (sizeOf(number(value), cell)) add(role, Math.floor(i / cols), i % cols, { text: number(value) }); });
    }
    const wrong = wrongCells(run);
    for (const [key, { value }] of done) add('P', ...key.split(',').map(Number), { text: number(value), tone: wrong.has(key) ? 'bad' : 'earlier' });
    return base;
  });
}

function drawMarks(matrix, put, touched, { cell, now }) {
  return touched.map((t) => {
    const [cx, cy] = put(t.requested);
    const when = now.has(t.access) ? 'now' : 'before';
    const place = `${cx},${cy},${cell},${when}`;
    if (t.access.mark?.place === place) return t.access.mark.part;
    const mark = marked(cx, cy, cell, t.access.how, when, { 'data-asked': cellName(matrix.name, t.requested) });
    if (!inside(matrix, t.requested)) mark.append(box(cx + 1.5, cy + 1.5, cell - 3, cell - 3, 'ghost'));
    t.access.mark = { place, part: mark };
    return mark;
  });
}

// A part that is the same in every step, as long as it is drawn at the same place and size.
function onceDrawn(run, key, place, draw) {
  const known = (run.drawn ??= new Map()).get(key);
  if (known && known.place === String(place)) return known.part;
  const part = draw();
  run.drawn.set(key, { place: String(place), part });
  return part;
}

const pointedAt = (role, put, { pointed, cell }) => (pointed?.role === role ? box(...put([pointed.row, pointed.col]), cell, cell, 'pointed') : null);

const inside = (matrix, [row, col]) => row >= 0 && col >= 0 && row < matrix.rows && col < matrix.cols;

// A fill has no cell of the matrix: it is drawn in the tile, outside the matrix.
function inMatrix(run, geometry, state, access) {
  if (access.how !== 'filled') return { access, array: access.array, requested: access.requested };
  const array = geometry.feeds[access.target];
  const origin = geometry.tiles[array]?.[state.frame.phase];
  if (!origin) return { access, array: '', requested: access.requested };
  return { access, array, requested: [origin[0] + access.put[0], origin[1] + access.put[1]] };
}

function gridLines(x, y, matrix, cell) {
  let d = '';
  if (cell < 7) return shape('path', { d: `M${x} ${y}h${matrix.cols * cell}v${matrix.rows * cell}h${-matrix.cols * cell}z`, class: 'grid' });
  for (let r = 0; r <= matrix.rows; r++) d += `M${x} ${y + r * cell}h${matrix.cols * cell}`;
  for (let c = 0; c <= matrix.cols; c++) d += `M${x + c * cell} ${y}v${matrix.rows * cell}`;
  return shape('path', { d, class: 'grid' });
}

function strips(role, matrix, put, { geometry, cell }) {
  const { rows, cols } = geometry.strips;
  const clip = ([first, count], most) => [first, Math.max(0, Math.min(first + count, most) - first)];
  const across = rows && clip(rows, matrix.rows);
  const down = cols && clip(cols, matrix.cols);
  if (role === 'M' && across) return [box(...put([across[0], 0]), matrix.cols * cell, across[1] * cell, 'strip')];
  if (role === 'N' && down) return [box(...put([0, down[0]]), down[1] * cell, matrix.rows * cell, 'strip')];
  if (role === 'P' && across && down) return [box(...put([across[0], down[0]]), down[1] * cell, across[1] * cell, 'strip')];
  return [];
}

// What the blocks before this one have left in P, for a lecture that goes through all of them.
function storedBefore(run, blockNumber) {
  if (run instanceof Computed) return run.storedBefore(blockNumber);
  run.before ??= new Map();
  if (!run.before.has(blockNumber)) {
    const earlier = run.trace.blocks.slice(0, run.trace.blocks.indexOf(blockNumber));
    run.before.set(blockNumber, new Map(earlier.flatMap((block) => [...stateAt(run, block, run.block(block).frames.length - 1).stored])));
  }
  return run.before.get(blockNumber);
}

function operandValues(matrix, put, cell) {
  return matrix.values.map((value, i) => {
    const [x, y] = put([Math.floor(i / matrix.cols), i % matrix.cols]);
    return fitted(number(value), x + cell / 2, y + cell / 2, cell, 'value');
  });
}

// What P holds of the blocks before this one; a cell that this block overwrites is left out.
function earlierSums(matrix, put, scene) {
  const { run, state, cell, done, blockNumber } = scene;
  const left = [...done].filter(([key]) => !state.stored.has(key));
  if (left.length < done.size) return shape('g', {}, sums(left, false, matrix, put, scene));
  return onceDrawn(run, `done|${blockNumber}`, [put([0, 0]), cell, done.size], () => shape('g', {}, sums(left, false, matrix, put, scene)));
}

function sums(stored, own, matrix, put, { run, cell }) {
  const wrong = wrongCells(run);
  return [...stored].map(([key, store]) => {
    const [row, col] = key.split(',').map(Number);
    const [x, y] = put([row, col]);
    const bad = wrong.has(key);
    const text = fitted(number(store.value), x + cell / 2, y + cell / 2, cell, `value${bad ? ' bad' : ''}${own ? '' : ' earlier'}`);
    if (!text) return box(x + cell / 4, y + cell / 4, cell / 2, cell / 2, bad ? 'known bad' : 'known', { rx: cell / 4 });
    if (own) text.attributes['data-cell'] = `${matrix.name}[${row}][${col}]`;
    return [text, bad ? shape('text', { x: x + cell - 3, y: y + cell * 0.26, class: 'badmark', 'font-size': cell * 0.26 }, '≠') : null];
  });
}

function wrongCells(run) {
  run.wrong ??= new Set(run.wrongCells ? run.wrongCells.map(String) : run.trace.findings.filter((f) => f.kind === 'wrong-product')
    .flatMap((f) => f.touches.map((t) => String(t.asked))));
  return run.wrong;
}

// The tile of this phase, including the part outside the matrix.
function outlines(role, matrix, put, { geometry, state, cell }) {
  const out = [];
  if (role === 'P') {
    const { rows, cols } = geometry.strips;
    if (rows && cols) out.push(box(...put([rows[0], cols[0]]), cols[1] * cell, rows[1] * cell, 'tile', { rx: 5 }));
    return out;
  }
  if (!state.frame) return out;
  for (const [shared, array] of Object.entries(geometry.feeds)) {
    const origin = geometry.tiles[array]?.[state.frame.phase];
    if (array !== matrix.name || !origin) continue;
    const [height, width] = geometry.sizes[shared];
    out.push(box(...put(origin), width * cell, height * cell, 'tile', { rx: 5 }));
  }
  return out;
}

// Where the chosen thread's operands of this frame came from.
function rings(matrix, put, { state, thread, cell }) {
  return state.used.filter((u) => u.thread === thread).flatMap((u) => {
    const held = state.shared[u.name]?.get(String(u.cell));
    if (!held?.origin || held.origin.array !== matrix.name || !held.origin.reached) return [];
    const [x, y] = put(held.origin.reached);
    const small = cell < 24; // the number needs all of it
    const inset = small ? 0 : 3;
    return [box(x + inset, y + inset, cell - 2 * inset, cell - 2 * inset, 'ring', { rx: cell / (small ? 6 : 3), style: small ? 'stroke-width:1.5' : null })];
  });
}

// The row of M, the column of N and the cell of P that belong to the chosen thread.
function lineOf(run, geometry, thread) {
  const line = { row: null, col: null };
  for (const [shared, array] of Object.entries(geometry.feeds)) {
    const used = geometry.uses.get(`${thread}|${shared}`);
    const origin = geometry.tiles[array] && Object.values(geometry.tiles[array])[0];
    if (!used || !origin) continue;
    if (run.roles[array] === 'M' && used.rows.size === 1) line.row = origin[0] + [...used.rows][0];
    if (run.roles[array] === 'N' && used.cols.size === 1) line.col = origin[1] + [...used.cols][0];
  }
  return line;
}

function threadLine(role, matrix, put, { run, geometry, thread, cell }) {
  const { row, col } = lineOf(run, geometry, thread);
  const holds = { row: row !== null && row < matrix.rows, col: col !== null && col < matrix.cols };
  if (role === 'M' && holds.row) return [box(...put([row, 0]), matrix.cols * cell, cell, 'line')];
  if (role === 'N' && holds.col) return [box(...put([0, col]), cell, matrix.rows * cell, 'line')];
  if (role === 'P' && row !== null && col !== null) return [box(...put([row, col]), cell, cell, 'line')];
  return [];
}

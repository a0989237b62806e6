// Shared memory: the block's tiles, cell by cell, with the thread that wrote the value and the value before it.

function drawShared(host, run, blockNumber, state, view) {
  const { sizes } = run.block(blockNumber).geometry;
  const names = Object.keys(sizes);
  if (!names.length) {
    clear(host, part('p', { class: 'note' }, say('shared.none')));
    return;
  }
  const total = names.reduce((sum, name) => sum + sizes[name][1], 0);
  const gap = 26;
  const frame = measured(host);
  const beside = (frame.width - gap * (names.length - 1) - 8) / total;
  const widest = Math.max(...names.map((name) => sizes[name][1]));
  const stacked = beside < 30 && names.length > 1 && !view.lecture;
  const highest = Math.max(...names.map((name) => sizes[name][0]));
  const fits = Math.min(stacked ? (frame.width - 8) / widest : beside, view.lecture ? (frame.high - 30) / highest : Infinity);
  const cell = Math.max(view.lecture ? 4 : 10, Math.min(view.lecture ? 110 : 74, fits)) * (view.zoom > 1 ? Math.sqrt(view.zoom) : 1);
  let x = 2; let y = 24; let right = 0; let bottom = 0;
  const tiles = [];
  const many = cell < WIDE && names.reduce((sum, name) => sum + sizes[name][0] * sizes[name][1], 0) > MOST_CELLS;
  const over = many ? new Map() : null;
  host.layout = { at: {}, cell };
  for (const name of names) {
    const [rows, cols] = sizes[name];
    host.layout.at[name] = [x, y];
    tiles.push(drawTile(name, rows, cols, x, y, cell, run, state, view.thread, over));
    right = Math.max(right, x + cols * cell); bottom = Math.max(bottom, y + rows * cell);
    if (stacked) y += rows * cell + 34; else x += cols * cell + gap;
  }
  const layers = Object.fromEntries(['below', 'cells', 'above'].map((layer) => [layer, tiles.map((tile) => shape('g', { class: 'matrix' }, tile[layer]))]));
  const size = [Math.ceil(right + 3), Math.ceil(bottom + 3), describeShared(run, state, names)];
  if (many) layered(host, ...size, cell, layers, EMPTY, over);
  else clear(host, picture(...size, layers.below, layers.cells, layers.above));
}

const WIDE = 46; // pixels: such a cell shows where its value is from, and which thread wrote it
const EMPTY = new Map();

function drawTile(name, rows, cols, x, y, cell, run, state, thread, over) {
  const readers = new Map();
  for (const { name: array, cell: at, thread: reader } of state.used) {
    if (array !== name) continue;
    const index = at[0] * cols + at[1];
    if (readers.has(index)) readers.get(index).push(reader); else readers.set(index, [reader]);
  }
  const now = new Set(state.touched.filter((a) => a.target === name).map((a) => a.put[0] * cols + a.put[1]));
  const known = onceDrawn(run, `tile|${name}`, [x, y, cell, language], () => ({ cells: [], grid: gridLines(x, y, { rows, cols }, cell) }));
  const cells = [];
  for (let index = 0; index < rows * cols; index++) {
    const [row, col] = [Math.floor(index / cols), index % cols];
    const held = state.shared[name]?.get(`${row},${col}`);
    const at = [x + col * cell, y + row * cell];
    const who = readers.get(index);
    const fresh = now.has(index);
    let drawn = known.cells[index];
    const changed = !drawn || drawn.held !== held || drawn.fresh !== fresh || drawn.who || who;
    if (over) {
      if (changed) drawn = known.cells[index] = { held, fresh, who, ...painted(held, fresh, who, ...at, thread) };
      if (held || who) over.set(name + index, drawn);
      continue;
    }
    if (changed) {
      const inside = [held ? drawHeld(held, `${name}[${row}][${col}]`, ...at, cell, run, fresh) : null, who ? drawReaders(who, ...at, cell, thread) : null];
      drawn = known.cells[index] = { held, fresh, who, part: shape('g', {}, inside) };
    }
    cells.push(drawn.part);
  }
  return {
    below: [shape('text', { x, y: y - 8, class: 'name' }, `${name}  ${rows}×${cols}`), box(x, y, cols * cell, rows * cell, 'ground'), over ? known.grid : null],
    cells,
    above: [over ? null : known.grid, box(x, y, cols * cell, rows * cell, 'tile', { rx: 5 })],
  };
}

const painted = (held, now, who, x, y, thread) => ({
  x, y, how: held?.how, now, text: held && number(held.value), ring: who && (who.includes(thread) ? 'mine' : 'others'),
});

function drawHeld(held, name, x, y, cell, run, now) {
  const wide = cell >= WIDE;
  const middle = x + cell / 2;
  const group = marked(x, y, cell, held.how, now ? 'now' : 'before', { 'data-cell': name, 'data-how': held.how });
  const former = wide && now && held.former !== undefined ? `${number(held.former)}→` : '';
  group.append(drawValue(number(held.value), former, middle, y + cell * 0.5, cell, wide ? 0.34 : 0.5));
  if (wide) {
    const small = Math.min(11, cell * 0.19);
    const origin = held.origin ? `${held.origin.array}${held.origin.requested.join(',')}` : say('short.fill');
    group.append(
      shape('text', { x: middle, y: y + small + 3, class: 'origin', 'font-size': small }, origin),
      shape('text', { x: middle, y: y + cell - 6, class: 'writer', 'font-size': small }, `← ${run.threadLabel(held.thread)}`));
  }
  return group;
}

// The value, and in front of it what it replaces: both together as wide as the cell at most.
function drawValue(text, former, middle, y, cell, most) {
  if (!former) return [fitted(text, middle, y, cell, 'value', most)];
  const digit = 0.62; const less = 0.62; // of the font's size: a digit's width, the former value's size
  const size = Math.min(cell * most, (cell - 8) / (digit * (text.length + less * former.length)));
  const left = middle - (size * digit * (text.length + less * former.length)) / 2;
  const at = left + size * digit * less * former.length;
  return [
    shape('text', { x: left, y, class: 'former', 'font-size': (size * less).toFixed(1), dy: '0.35em' }, former),
    shape('text', { x: at + (size * digit * text.length) / 2, y, class: 'value', 'font-size': size.toFixed(1), dy: '0.35em' }, text),
  ];
}

// How many threads read the cell in this frame; the chosen one's are ringed.
function drawReaders(who, x, y, cell, thread) {
  const out = [];
  const mine = who.includes(thread);
  out.push(box(x + 2.5, y + 2.5, cell - 5, cell - 5, mine ? 'ring' : 'read', { rx: Math.min(8, cell / 4) }));
  if (cell >= 58) {
    out.push(shape('text', { x: x + cell - 5, y: y + cell * 0.5, class: 'readers', 'font-size': Math.min(12, cell * 0.2), dy: '0.35em' }, `×${who.length}`));
  }
  return out;
}

// The story of a cell: which threads of the recorded blocks load and use it, and how often.

function storyOf(run, array, row, col) {
  run.stories ??= new Map();
  const key = `${array}|${row}|${col}`;
  if (!run.stories.has(key)) run.stories.set(key, readStory(run, array, row, col));
  return run.stories.get(key);
}

function readStory(run, array, row, col) {
  if (run instanceof Computed) run.complete();
  const story = { loads: [], stores: [], uses: 0, users: new Set() };
  const c = run.columns;
  const held = new Map(); // block|shared cell -> whether it is this element now
  for (let i = 0; i < c.kind.length; i++) {
    const who = () => ({ block: c.block[i], thread: c.thread[i], phase: c.phase[i] });
    if (c.kind[i] === KIND.USE) {
      if (held.get(`${c.block[i]}|${c.array[i]}|${c.row[i]}|${c.col[i]}`)) {
        story.uses += 1;
        story.users.add(`${c.block[i]}|${c.thread[i]}`);
      }
      continue;
    }
    const a = run.access(i);
    if (!a) continue;
    const mine = a.array === array && a.reached && a.reached[0] === row && a.reached[1] === col;
    if (mine && a.store) story.stores.push({ ...who(), value: a.value });
    else if (mine) {
      story.loads.push(who());
      if (!a.put) { story.uses += 1; story.users.add(`${c.block[i]}|${c.thread[i]}`); }
    }
    const to = a.how === 'filled' ? c.array[i] : c.to_array[i];
    if (a.put) held.set(`${c.block[i]}|${to}|${a.put[0]}|${a.put[1]}`, mine);
  }
  return story;
}

function storyText(run, role, row, col) {
  const matrix = run.matrices[role];
  const story = storyOf(run, matrix.name, row, col);
  const name = (w) => say('story.who', { thread: run.threadName(w.thread), block: run.blockName(w.block), phase: w.phase });
  const cell = cellName(matrix.name, [row, col]);
  if (role === 'P') {
    return story.stores.length ? say('story.stored', { cell, list: list(story.stores.map(name), 3), count: story.stores.length })
      : say('story.unstored', { cell });
  }
  if (!story.loads.length) return say('story.unloaded', { cell });
  return say('story.loaded', {
    cell, value: number(matrix.values[row * matrix.cols + col]), loads: story.loads.length, list: list(story.loads.map(name), 4),
    uses: story.uses, users: story.users.size,
  });
}

// Pointing with the mouse, or with the arrow keys while the picture has the focus.
function attachStories(host, note, pane) {
  const show = (role, row, col) => {
    pane.pointed = { role, row, col };
    clear(note, storyText(pane.run, role, row, col));
    host.pointed = pane.pointed;
    drawMatrices(host, pane.run, pane.block, pane.state, pane.view);
  };
  host.addEventListener('mousemove', (event) => {
    const at = cellUnder(host, ofMatrices(pane.run), event);
    if (at) show(at.name, at.row, at.col);
  });
  const answer = () => { if (pane.pointed) predict.answer(app, pane.pointed.role, [pane.pointed.row, pane.pointed.col]); };
  host.addEventListener('click', answer);
  host.addEventListener('keydown', (event) => {
    if (event.key === 'Enter') { answer(); return; }
    const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (!move || !host.layout || event.shiftKey) return;
    event.preventDefault();
    event.stopPropagation();
    const from = pane.pointed ?? { role: 'M', row: 0, col: -1 };
    const next = [from.row + move[0], from.col + move[1]];
    const { rows, cols } = pane.run.matrices[from.role];
    if (next[0] >= 0 && next[1] >= 0 && next[0] < rows && next[1] < cols) show(from.role, ...next);
    else show(...beyond(pane.run, from, move));
  });
}

// From the edge of one matrix into the next, as they are arranged: M below left, N above right, P where they meet.
function beyond(run, { role, row, col }, [down, right]) {
  const { M, N, P } = run.matrices;
  if (role === 'M' && right > 0) return ['P', Math.min(row, P.rows - 1), 0];
  if (role === 'P' && right < 0) return ['M', Math.min(row, M.rows - 1), M.cols - 1];
  if (role === 'P' && down < 0) return ['N', N.rows - 1, Math.min(col, N.cols - 1)];
  if (role === 'N' && down > 0) return ['P', 0, Math.min(col, P.cols - 1)];
  if (role === 'N' && right < 0) return ['M', 0, M.cols - 1];
  if (role === 'M' && down < 0) return ['N', N.rows - 1, 0];
  return [role, row, Math.max(0, col)];
}

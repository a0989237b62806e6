// Two runs on one timeline: steps that both take are shown together; where one has a step more, the other waits.

function signatures(run, block) {
  const seen = new Map();
  const { frames } = run.block(block);
  return frames.map((frame, at) => {
    const before = frames.slice(0, at).reverse().find((f) => f.stage !== 'barrier');
    const c = run.columns;
    const what = {
      load: () => run.names[c.to_array[frame.rows[0]] >= 0 ? c.to_array[frame.rows[0]] : c.array[frame.rows[0]]],
      store: () => run.names[c.array[frame.rows[0]]],
      barrier: () => before?.stage ?? '',
      use: () => '',
    }[frame.stage]();
    const key = `${frame.phase}|${frame.stage}|${what}`;
    seen.set(key, (seen.get(key) ?? 0) + 1);
    return `${key}|${seen.get(key)}`;
  });
}

// The merged timeline: [frame of the first, frame of the second] after each step.
function merge(first, second) {
  const table = Array.from({ length: first.length + 1 }, () => new Uint32Array(second.length + 1));
  for (let i = first.length - 1; i >= 0; i--) {
    for (let j = second.length - 1; j >= 0; j--) {
      table[i][j] = first[i] === second[j] ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
    }
  }
  const out = [[-1, -1]];
  let i = 0; let j = 0;
  while (i < first.length || j < second.length) {
    if (i < first.length && j < second.length && first[i] === second[j]) { i += 1; j += 1; }
    else if (j >= second.length || (i < first.length && table[i + 1][j] >= table[i][j + 1])) i += 1;
    else j += 1;
    out.push([i - 1, j - 1]);
  }
  return out;
}

// One pane: every frame. Two panes: the merged timeline.
function timelineOf(panes) {
  const [one, two] = panes;
  const frames = one.run.block(one.block).frames;
  if (!two) return [[-1], ...frames.map((_, i) => [i])];
  return merge(signatures(one.run, one.block), signatures(two.run, two.block));
}

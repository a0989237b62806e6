// The memories of a GPU and the bytes that this block has moved on each link so far.

function drawMemory(run, blockNumber, state) {
  const bytes = elementBytes(run);
  const { loads, direct, uses, stores } = state.counts;
  const now = state.frame ? state.touched : [];
  const moving = {
    down: now.some((a) => !a.store && a.target && a.how !== 'filled'), up: now.some((a) => a.store),
    past: now.some((a) => !a.store && !a.target), use: state.used.length > 0,
  };
  const amount = (count) => say('memory.bytes', { count: count * bytes });
  const level = (x, key, more) => shape('g', { class: 'level' }, box(x, 18, 112, 40, 'memory', { rx: 7 }),
    shape('text', { x: x + 56, y: 35, class: 'level-name' }, say(`memory.${key}`)), shape('text', { x: x + 56, y: 50, class: 'level-size' }, more));
  const link = (d, x, y, count, busy, key) => shape('g', { class: `link ${busy ? 'busy' : ''}`, 'data-link': key, 'data-bytes': count * bytes },
    shape('path', { d, 'marker-end': 'url(#linkhead)' }), shape('text', { x, y }, amount(count)));
  const shared = loads - direct;
  const hasShared = Object.keys(run.block(blockNumber).geometry.sizes).length > 0;
  const label = say('memory.text', { loads: loads * bytes, uses: uses * bytes, stores: stores * bytes });
  return [picture(510, 94, label,
    level(2, 'global', say('memory.far')), hasShared ? level(199, 'shared', say('memory.near')) : null, level(396, 'registers', say('memory.own')),
    hasShared ? [link('M116 38 H195', 154, 31, shared, moving.down, 'load'), link('M313 38 H392', 351, 31, uses, moving.use, 'use')] : null,
    direct || !hasShared ? link('M70 16 C110 0 400 0 440 15', 255, 14, direct, moving.past, 'direct') : null,
    link('M452 60 C440 90 70 90 58 62', 255, 75, stores, moving.up, 'store')),
  part('p', { class: 'note spare' }, label)];
}

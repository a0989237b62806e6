// The page itself: which scene, which state, and the link that leads back to it.

const packed = JSON.parse(document.getElementById('scenes').textContent);
const MOST_RUNS = 8; // computed runs that are kept: one of 64³ has a log of 40 MB

const app = {
  panes: [], timeline: [[-1]], position: 0, phases: 1, playing: null, drops: new Set(), beside: settings.compare,
  tile: null, schedule: false, walk: false, speed: 1, layout: 0, runs: new Map(),
  shape: null, seed: null, computing: Boolean(settings.compute) && computes(), machines: new Map(), computed: new Map(),
  view: { block: 0, thread: 0, zoom: 1, lens: 'memory', card: '', lecture: true, fixed: false },

  async run(index) {
    if (!this.runs.has(index)) this.runs.set(index, new Run(await unpack(packed[index])));
    return this.runs.get(index);
  },

  // The run of a choice: recorded, or computed here.
  async chosen(drops, index) {
    if (index >= 0 && this.shape === null && this.seed === null) return this.run(index);
    const shape = this.shape ?? settings.compute.shape;
    const choice = { shape, seed: this.seed, drops: [...drops].sort(), tile: this.tile, schedule: this.schedule };
    const key = JSON.stringify(choice);
    if (!this.computed.has(key)) {
      if (this.computed.size >= MOST_RUNS) this.computed.delete(this.computed.keys().next().value);
      this.computed.set(key, new Computed(await this.machine(this.tile ?? settings.tile), choice));
    }
    return this.computed.get(key);
  },
  machine(tile) {
    if (!this.machines.has(tile)) this.machines.set(tile, Machine.load(settings.compute.modules[settings.compute.tiles.indexOf(tile)]));
    return this.machines.get(tile);
  },
  // Whether a choice can be shown.
  has(drops, tile) {
    return this.sceneOf(drops, tile) >= 0 || (this.computing && (tile === null || settings.compute.tiles.includes(tile)));
  },

  // The number of a recorded scene, or -1: what is left out, which TILE_WIDTH, whether in the order that fails.
  sceneOf(drops, tile = null, schedule = false, walk = false) {
    const wanted = [...drops].sort().join();
    return settings.scenes.findIndex((some) => some.tile === tile && some.schedule === schedule && some.walk === walk && [...some.drops].sort().join() === wanted);
  },
  get failing() { return this.tile === null && this.shape === null && this.seed === null ? this.sceneOf(this.drops, null, true) : -1; },
  get fails() { return this.failing >= 0 || this.panes.some((pane) => pane.run.raced); },
  get story() { return this.sceneOf([], null, false, true); },
  get scene() {
    if (this.walk) return this.story;
    return this.sceneOf(this.drops, this.tile, this.schedule);
  },

  // Panes for the chosen scene; the state stays the same as far as the new run has it.
  async open() {
    const place = this.link();
    const wanted = settings.compare ? [this.run(0), this.run(1)] : [this.chosen(this.drops, this.scene)];
    if (!settings.compare && this.beside && this.scene && !this.walk) wanted.unshift(this.chosen(new Set(), this.tile === null ? 0 : -1));
    const runs = await Promise.all(wanted);
    if (!settings.compare) this.schedule = runs.at(-1).schedule; // a run without a race has no order that fails
    this.panes = runs.map((run) => new Pane(run, this.view, (change) => this.choose(change)));
    this.arrange();
    const main = document.getElementById('panes');
    main.classList.toggle('two', runs.length > 1);
    document.body.classList.toggle('large', runs.some(({ matrices: { M, N } }) => M && N && M.cols + N.cols > 10));
    clear(main, this.panes.map((pane) => pane.element));
    this.retime();
    buildControls(this);
    buildTimeline(this);
    this.read(place);
  },

  // A lecture fits one screen where there is room for that; sizes are measured again.
  arrange() {
    this.view.fixed = this.view.lecture && window.innerWidth >= 900 && window.innerHeight >= 500;
    document.body.classList.toggle('lecture', this.view.lecture);
    document.body.classList.toggle('fixed', this.view.fixed);
    this.layout += 1;
  },

  retime() {
    this.timeline = timelineOf(this.panes);
    this.phases = Math.max(...this.panes.map((pane) => pane.run.block(pane.block).frames.at(-1)?.phase ?? 0)) + 1;
  },

  frameAt(position) {
    const indexes = this.timeline[position];
    const before = this.timeline[position - 1] ?? [];
    const moved = indexes.findIndex((index, i) => index !== before[i]);
    const i = moved < 0 ? 0 : moved;
    return this.panes[i].run.block(this.panes[i].block).frames[indexes[i]] ?? null;
  },
  phaseAt(position) { return this.frameAt(position)?.phase ?? null; },
  stageAt(position) { return this.frameAt(position)?.stage ?? 'start'; },

  go(position) {
    if (predict.holds(this, position)) return;
    const forward = position === this.position + 1;
    this.position = Math.max(0, Math.min(this.timeline.length - 1, position));
    if (this.playing && this.position === this.timeline.length - 1 && !this.nextBlock) this.play(false);
    this.show();
    if (forward) setTimeout(() => fly(this.panes), 25); // after the frame: its layout is known then
  },
  // In a lecture, playing goes on with the next recorded block, and P fills.
  get nextBlock() {
    const { blocks } = this.panes[0].run.trace;
    return this.view.lecture ? blocks[blocks.indexOf(this.panes[0].block) + 1] ?? 0 : 0;
  },
  tick() {
    if (this.position < this.timeline.length - 1) this.go(this.position + 1);
    else if (this.nextBlock) { this.view.block = this.nextBlock; this.retime(); buildTimeline(this); this.go(0); }
    else this.play(false);
  },
  goPhase(phase, step = 0) {
    const first = this.timeline.findIndex((_, position) => this.phaseAt(position) === phase);
    if (first < 0) return;
    const last = this.timeline.findLastIndex((_, position) => this.phaseAt(position) === phase);
    this.go(Math.min(first + step, last));
  },
  choose(change) {
    const moved = 'block' in change && change.block !== this.view.block;
    const place = this.link();
    Object.assign(this.view, change);
    if ('lens' in change || 'zoom' in change) this.layout += 1;
    if (moved) { this.retime(); buildTimeline(this); this.read({ ...place, block: null }); } else this.show();
  },
  play(on) {
    clearInterval(this.playing);
    this.playing = on ? setInterval(() => this.tick(), 1500 / this.speed) : null;
    if (on && this.position === this.timeline.length - 1 && !this.nextBlock) {
      if (this.view.lecture) { [this.view.block] = this.panes[0].run.trace.blocks; this.retime(); buildTimeline(this); }
      this.go(0);
    } else this.show();
  },
  faster(speed) {
    this.speed = Math.max(0.25, Math.min(4, speed));
    if (this.playing) this.play(true); else this.show();
  },
  async drop(name) {
    const wished = new Set(this.drops);
    if (!wished.delete(name)) wished.add(name);
    this.drops = this.has(wished, this.tile) ? wished : new Set([name]);
    if (!this.has(this.drops, this.tile)) this.tile = null;
    this.walk = false;
    if (this.failing < 0 && !this.computing) this.schedule = false;
    await this.open();
    document.getElementById(`drop-${name}`).focus();
  },
  async chooseTile(tile) {
    this.tile = tile;
    this.walk = false;
    if (tile !== null) { this.schedule = false; if (!this.has(this.drops, tile)) this.drops = new Set(); }
    await this.open();
    document.getElementById('tile').focus();
  },
  // Another shape or other values: computed here. A shape of null is the recorded one.
  async compute(shape, seed) {
    this.shape = shape && shape.join() === settings.compute.shape.join() ? null : shape;
    this.seed = seed;
    this.walk = false;
    const focused = document.activeElement?.id;
    await this.open();
    document.getElementById(focused)?.focus();
  },
  // The notes' 4×4 example from its first step, or back to the page's own run.
  async tell(on) {
    this.walk = on;
    if (on) { this.drops = new Set(); this.tile = null; this.schedule = false; this.view.block = 0; this.shape = null; this.seed = null; }
    this.position = 0;
    this.panes = [];
    this.address = '#';
    await this.open();
    document.getElementById('walk').focus();
  },
  async fail(on) { this.schedule = on; this.position = 0; this.panes = []; await this.open(); document.getElementById('schedule').focus(); },
  async lecture(on) {
    this.view.lecture = on;
    if (on) this.view.zoom = 1;
    await this.open();
    document.getElementById('lecture').focus();
  },
  async putBeside(on) { this.beside = on; await this.open(); document.getElementById('beside').focus(); },
  async speak(code) {
    language = code;
    document.documentElement.lang = code;
    await this.open();
    document.getElementById('language').focus();
  },

  show() {
    this.panes.forEach((pane, i) => pane.show(this.timeline[this.position][i]));
    showControls(this);
    document.getElementById('live').textContent = this.panes.map((pane) => pane.spoken).join(' ');
    this.keep(this.hash());
  },

  // The address follows once stepping pauses: to write it takes the browser milliseconds.
  keep(address) {
    this.address = address;
    clearTimeout(this.keeping);
    const before = location.hash;
    this.keeping = setTimeout(() => {
      if (location.hash !== before) return; // a link was followed meanwhile
      try { history.replaceState(null, '', address); } catch { /* a frame without an address */ }
    }, 60);
  },

  // Links to a state, x before y: #block=0,0&phase=1&step=2&thread=1,0
  link() {
    if (!this.panes.length) return this.parse(this.address ?? location.hash);
    if (!this.timeline[this.position]) return { phase: null, step: 0 };
    const phase = this.phaseAt(this.position);
    const first = this.timeline.findIndex((_, position) => this.phaseAt(position) === phase);
    return { phase, step: phase === null ? 0 : this.position - first };
  },
  hash() {
    const { phase, step } = this.link();
    const pane = this.panes[0];
    const parts = [`block=${nameOf(pane.block, pane.run.trace.grid)}`];
    if (phase !== null) parts.push(`phase=${phase}`, `step=${step}`);
    if (this.view.thread) parts.push(`thread=${nameOf(this.view.thread, pane.run.trace.block)}`);
    if (this.drops.size) parts.push(`drop=${[...this.drops].join(',')}`);
    if (this.beside && !settings.compare && this.scene) parts.push('beside=1');
    if (this.tile !== null) parts.push(`tile=${this.tile}`);
    if (this.shape) parts.push(`shape=${this.shape.join('x')}`);
    if (this.seed !== null) parts.push(`seed=${this.seed}`);
    if (this.schedule) parts.push('schedule=1');
    if (this.walk) parts.push('walk=1');
    if (predict.on) parts.push('predict=1');
    if (!this.view.lecture) parts.push('lecture=0');
    if (this.view.lens !== 'memory') parts.push(`lens=${this.view.lens}`);
    if (language !== settings.lang) parts.push(`lang=${language}`);
    return `#${parts.join('&')}`;
  },
  parse(hash) {
    const given = new URLSearchParams(hash.replace(/^#/, ''));
    const numbers = (key) => (given.get(key) ?? '').split(',').filter(Boolean).map(Number);
    return {
      block: numbers('block'), thread: numbers('thread'), phase: given.has('phase') ? Number(given.get('phase')) : null,
      step: Number(given.get('step') ?? 0), lang: given.get('lang'), beside: given.get('beside') === '1',
      tile: given.has('tile') ? Number(given.get('tile')) : null, schedule: given.get('schedule') === '1', walk: given.get('walk') === '1',
      shape: shapeIn(given.get('shape')), seed: given.has('seed') ? Number(given.get('seed')) | 0 : null,
      predict: given.get('predict') === '1', lecture: given.get('lecture') !== '0', lens: given.get('lens'),
      drops: (given.get('drop') ?? '').split(',').filter((name) => settings.drops.includes(name)),
    };
  },
  // Go to the state of a link; invalid parts are ignored.
  read(place) {
    const { run } = this.panes[0];
    const block = place.block?.length >= 2 ? linear(place.block, run.trace.grid) : this.panes[0].block;
    if (run.trace.blocks.includes(block) && block !== this.view.block) {
      this.view.block = block;
      this.retime(); buildTimeline(this);
    }
    const thread = place.thread?.length >= 2 ? linear(place.thread, run.trace.block) : this.view.thread;
    if (thread >= 0 && thread < run.threads) this.view.thread = thread;
    if (place.phase === null || place.phase === undefined) this.go(0);
    else { this.position = 0; this.goPhase(Math.max(0, Math.min(this.phases - 1, place.phase || 0)), place.step || 0); }
  },
  async follow() {
    clearTimeout(this.keeping);
    this.address = null;
    const place = this.parse(location.hash);
    if (place.lang && place.lang in settings.languages) language = place.lang;
    document.documentElement.lang = language;
    const drops = new Set(place.drops);
    this.tile = this.has([], place.tile) ? place.tile : null;
    this.drops = [drops, new Set(place.drops.slice(0, 1))].find((some) => this.has(some, this.tile)) ?? new Set();
    this.beside = settings.compare || place.beside;
    this.shape = this.computing ? place.shape : null;
    this.seed = this.computing ? place.seed : null;
    this.schedule = place.schedule && (this.failing >= 0 || this.computing);
    this.walk = place.walk && this.story >= 0;
    this.view.lecture = place.lecture;
    predict.on = place.predict;
    if (place.lens in LENSES) this.view.lens = place.lens;
    this.panes = [];
    await this.open();
    document.body.dataset.ready = 'yes';
  },

  key(event) {
    const tag = event.target.tagName;
    const typed = tag === 'SELECT' || tag === 'TEXTAREA' || (tag === 'INPUT' && event.target.type !== 'checkbox');
    if (event.ctrlKey || event.metaKey || event.altKey || typed) return;
    if (event.key === ' ' && ['BUTTON', 'SUMMARY', 'INPUT'].includes(tag)) return;
    const { blocks } = this.panes[0].run.trace;
    const turn = (by) => this.choose({ block: blocks[(blocks.indexOf(this.panes[0].block) + by + blocks.length) % blocks.length] });
    const phase = this.phaseAt(this.position) ?? 0;
    const keys = {
      ArrowRight: () => (event.shiftKey ? this.goPhase(phase + 1) : this.go(this.position + 1)),
      ArrowLeft: () => (event.shiftKey ? this.goPhase(phase - 1) : this.go(this.position - 1)),
      PageDown: () => this.go(this.position + 1), PageUp: () => this.go(this.position - 1), // what clickers send
      l: () => this.lecture(!this.view.lecture), Escape: () => this.view.lecture && this.lecture(false),
      '.': () => document.body.classList.toggle('blank'), '+': () => this.faster(this.speed * 2), '-': () => this.faster(this.speed / 2),
      Home: () => this.go(0), End: () => this.go(this.timeline.length - 1),
      ' ': () => this.play(!this.playing), '[': () => turn(-1), ']': () => turn(1),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  },
};

// A shape as it stands in a link: 5x6x7, each side from 1 to the page's limit.
function shapeIn(text) {
  const sides = (text ?? '').split('x').map(Number);
  const fits = sides.length === 3 && sides.every((side) => Number.isInteger(side) && side >= 1 && side <= settings.compute?.largest);
  return fits && (!settings.compute.square || new Set(sides).size === 1) ? sides : null;
}

// For the console and for tests: the faults and the P of a run that is not shown.
async function computeAlone(shape, { tile = null, drops = [], seed = null } = {}) {
  const run = new Computed(await app.machine(tile ?? settings.tile), { shape, seed, drops, tile, schedule: false });
  return { findings: run.trace.findings, P: run.matrices.P.values, counters: { ...run.trace.counters }, milliseconds: run.milliseconds, entries: run.made.count, lost: run.lost };
}

async function begin() {
  if (typeof DecompressionStream === 'undefined') {
    document.getElementById('panes').textContent = say('error.browser');
    return;
  }
  document.body.classList.toggle('unrun', Boolean(settings.live)); // its pictures show another kernel
  await app.follow();
  if (settings.live) live.begin();
  if (app.computing) window.tilewise = { compute: computeAlone };
  document.addEventListener('keydown', (event) => app.key(event));
  window.addEventListener('hashchange', () => app.follow());
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => repaint());
  window.addEventListener('beforeprint', () => repaint('light'));
  window.addEventListener('afterprint', () => repaint());
  let size = `${window.innerWidth}x${window.innerHeight}`;
  window.addEventListener('resize', () => {
    const now = `${window.innerWidth}x${window.innerHeight}`;
    if (now !== size) { size = now; app.arrange(); app.show(); }
  });
}
begin();

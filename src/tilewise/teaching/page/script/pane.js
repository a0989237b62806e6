// A pane: one run, drawn whole. The page has one, or two beside each other.

class Pane {
  constructor(run, view, choose) {
    this.run = run;
    this.view = view;
    this.choose = choose;
    this.parts = {};
    const card = (key, name, more = {}) => {
      const body = (this.parts[key] = html('div', { class: `body ${key}`, ...more }));
      return html('section', { class: `card card-${key}` }, html('h3', {}, titled(say(name))), body);
    };
    const scroll = { tabindex: 0, role: 'group' };
    this.broke = html('div', { class: 'broke', role: 'status' });
    this.caption = html('div', { class: 'caption' });
    this.story = html('p', { class: 'story', role: 'status' }, say('story.how'));
    this.element = html('div', { class: 'pane' },
      html('h2', { class: 'pane-title' }, run.title, run.drops.map((drop) => html('span', { class: 'dropped' }, dropName(drop))),
        run.schedule ? html('span', { class: 'dropped' }, say('schedule.title')) : null),
      this.broke, this.caption,
      html('div', { class: 'cards' },
        html('div', { class: 'column' },
          card('matrices', 'card.matrices', { ...scroll, 'aria-label': say('card.matrices') }), this.story, legend(),
          card('findings', 'card.findings', { ...scroll, 'aria-label': say('card.findings') })),
        html('div', { class: 'column' },
          card('shared', 'card.shared', { ...scroll, 'aria-label': say('card.shared') }),
          card('threads', 'card.threads', { role: 'group', 'aria-label': say('card.threads') }),
          card('gate', 'card.gate'), card('counters', 'card.counters'), card('lens', 'card.lens')),
        html('div', { class: 'column wide' },
          card('listing', 'card.listing', { ...scroll, 'aria-label': say('card.listing') }))));
    this.parts.threads.addEventListener('keydown', (event) => threadKey(event, run, view, (thread) => choose({ thread })));
    this.parts.threads.addEventListener('click', (event) => {
      const at = cellUnder(this.parts.threads, { threads: [Math.ceil(run.threads / 32) * 32, Math.min(run.wide, 32)] }, event);
      const thread = at && at.row * Math.min(run.wide, 32) + at.col;
      if (at && thread < run.threads) choose({ thread });
    });
    this.lines = buildListing(this.parts.listing, run);
    drawFindings(this.parts.findings, run);
    drawBroken(this.broke, run);
    if (['M', 'N', 'P'].every((role) => run.matrices[role])) attachStories(this.parts.matrices, this.story, this);
    else this.story.remove();
    attachTips(this.parts.matrices, () => ofMatrices(run), ({ name, row, col }) => {
      const access = this.state.inPhase.find((a) => a.how !== 'filled' && run.roles[a.array] === name && same(a.requested, [row, col]));
      return access && describeAccess(run, access);
    });
    attachTips(this.parts.shared, () => run.block(this.block).geometry.sizes, ({ name, row, col }) => {
      const held = this.state.shared[name]?.get(`${row},${col}`);
      if (!held) return '';
      const { origin, thread, value } = held;
      return origin ? describeAccess(run, origin) : say('access.filled', { thread: run.threadName(thread), value: number(value) });
    });
  }

  // The block shown here; a run that did not record the chosen one shows its first.
  get block() {
    return this.run.trace.blocks.includes(this.view.block) ? this.view.block : this.run.trace.blocks[0];
  }

  show(index) {
    const { run, view, parts } = this;
    const state = stateAt(run, this.block, Math.min(index, run.block(this.block).frames.length - 1));
    let caption = captionOf(run, this.block, state, Math.min(view.thread, run.threads - 1));
    this.state = state;
    if (app.walk && state.frame && `walk.${state.index + 1}` in settings.messages.en) {
      caption.text = [say(`walk.${state.index + 1}`)];
      caption.title = `${say('walk.of', { step: state.index + 1, steps: 12 })} · ${caption.title}`;
    }
    if (this === app.panes[0]) caption = predict.caption(run, caption);
    this.spoken = [caption.title, ...caption.text, ...caption.kinds.map((k) => k.text), caption.mine].filter(Boolean).join(' ');
    clear(this.caption,
      part('h2', { class: 'state' }, caption.title),
      caption.text.map((sentence) => part('p', {}, sentence)),
      caption.kinds.length ? part('ul', { class: 'kinds' }, caption.kinds.map((k) => part('li', { class: k.how }, swatch(k.how), part('span', {}, k.text)))) : null,
      caption.mine ? part('p', { class: 'mine' }, caption.mine) : null);
    drawCounters(parts.counters, run, this.block, state); // before the pictures, which take the height that is left
    drawMatrices(parts.matrices, run, this.block, state, view);
    drawShared(parts.shared, run, this.block, state, view);
    drawThreads(parts.threads, run, state, view, (thread) => this.choose({ thread }));
    if (!view.lecture) drawGate(parts.gate, run, this.block, state); // a lecture does not show it
    this.element.classList.toggle('many', state.touched.length > MOST_FLIGHTS);
    drawLens(parts.lens, run, this.block, state, view, this.choose);
    markLines(parts.listing, this.lines, run, state);
  }
}

function swatch(how) {
  return shape('svg', { width: 18, height: 18, viewBox: '0 0 18 18', 'aria-hidden': 'true', class: 'swatch' }, marked(0, 0, 18, how, 'now'));
}

function legend() {
  const entry = (how) => html('li', {}, swatch(how), html('span', {}, say(`legend.${how}`)));
  const line = (name) => html('li', {}, shape('svg', { width: 18, height: 18, viewBox: '0 0 18 18', 'aria-hidden': 'true', class: 'swatch' },
    shape('g', { class: 'matrix' }, box(2, 2, 14, 14, name, { rx: name === 'ring' ? 6 : 2 }))), html('span', {}, say(`legend.${name}`)));
  return html('ul', { class: 'legend', 'aria-label': say('legend') },
    ['loaded', 'filled', 'silent', 'outside'].map(entry), ['tile', 'strip', 'line', 'ring'].map(line));
}

// A card's title, and what a lecture leaves out of it.
function titled(title) {
  const [, short, rest] = title.match(/^([^:,]*)(.*)$/);
  return rest && !rest.includes('M') ? [short, html('span', { class: 'more' }, rest)] : [title];
}

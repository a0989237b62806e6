// The toolbar: stepping, phase, block, zoom, what-if toggles, language and theme. Built again for each language.

const ICONS = {
  first: 'M3 3h2.4v12H3zM15 3v12L6 9z', back: 'M12.5 3v12L4.5 9z', play: 'M4.5 2.5v13L15.5 9z',
  pause: 'M4 3h3.6v12H4zM10.4 3H14v12h-3.6z', next: 'M5.5 3v12l8-6z', last: 'M12.6 3H15v12h-2.4zM3 3v12l9-6z',
};

function buildControls(app) {
  const button = (id, key, icon, action) => html('button', {
    type: 'button', id, class: 'step', 'aria-label': say(key), title: say(key), onclick: action,
  }, shape('svg', { width: 18, height: 18, viewBox: '0 0 18 18', 'aria-hidden': 'true' }, shape('path', { d: ICONS[icon] })));
  clear(document.getElementById('steps'),
    button('first', 'control.first', 'first', () => app.go(0)),
    button('back', 'control.back', 'back', () => app.go(app.position - 1)),
    button('play', 'control.play', 'play', () => app.play(!app.playing)),
    button('next', 'control.next', 'next', () => app.go(app.position + 1)),
    button('last', 'control.last', 'last', () => app.go(app.timeline.length - 1)));
  clear(document.getElementById('pickers'), phasePicker(app), blockPicker(app), tilePicker(app), speedPicker(app), zoomPicker(app), walkButton(app), lectureButton(app));
  buildWhatIf(app);
  clear(document.getElementById('preferences'), languagePicker(app), themePicker());
  clear(document.getElementById('keys'), html('summary', {}, say('keys.title')), html('dl', {},
    ['→ / PageDown', '← / PageUp', 'Shift + → ←', 'Home / End', 'Space', '[ ]', '+ −', 'L', '.'].flatMap((key, i) => [
      html('dt', {}, html('kbd', {}, key)), html('dd', {}, say(`keys.${i + 1}`))])));
  document.getElementById('skip').textContent = say('control.skip');
  document.getElementById('toolbar').setAttribute('aria-label', say('control.toolbar'));
}

function labelled(id, key, control, more = null) {
  control.setAttribute('aria-label', say(key)); // a lecture hides some of the labels
  return html('div', { class: `picker picker-${id}` }, html('label', { for: id }, say(key)), control, more);
}

function phasePicker(app) {
  const slider = html('input', {
    id: 'phase', type: 'range', min: 0, max: Math.max(0, app.phases - 1), step: 1, value: 0,
    disabled: app.phases < 2, oninput: (event) => app.goPhase(Number(event.target.value)),
  });
  return labelled('phase', 'control.phase', slider, html('output', { id: 'where', for: 'phase' }));
}

function blockPicker(app) {
  const run = app.panes[0].run;
  const options = run.trace.blocks.map((block) => html('option', { value: block }, run.blockName(block)));
  const select = html('select', { id: 'block', onchange: (event) => app.choose({ block: Number(event.target.value) }) }, options);
  const all = run.trace.grid.reduce((product, n) => product * n, 1);
  const note = run.trace.blocks.length < all
    ? html('span', { class: 'sampled' }, say('control.sampled', { shown: run.trace.blocks.length, all })) : null;
  return labelled('block', 'control.block', select, note);
}

// The same kernel at other tile widths, each one recorded.
function tilePicker(app) {
  const more = app.computing ? settings.compute.tiles : [];
  const tiles = [...new Set([...settings.scenes.map((scene) => scene.tile), ...more])].filter((tile) => tile !== null && tile !== settings.tile);
  if (!tiles.length) return null;
  const options = [[null, settings.tile], ...tiles.map((tile) => [tile, tile])].sort((a, b) => a[1] - b[1]);
  return labelled('tile', 'control.tile', html('select', {
    id: 'tile', onchange: (event) => app.chooseTile(event.target.value === '' ? null : Number(event.target.value)),
  }, options.map(([value, name]) => html('option', { value: value ?? '', selected: value === app.tile }, String(name)))));
}

function speedPicker(app) {
  return labelled('speed', 'control.speed', html('select', { id: 'speed', onchange: (event) => app.faster(Number(event.target.value)) },
    [0.25, 0.5, 1, 2, 4].map((speed) => html('option', { value: speed, selected: speed === app.speed }, `${speed}×`))));
}

const walkButton = (app) => (app.story < 0 ? null : html('button', {
  type: 'button', id: 'walk', class: 'toggle plain', 'aria-pressed': String(app.walk), onclick: () => app.tell(!app.walk),
}, say('control.walk')));

const predictButton = (app) => html('button', {
  type: 'button', id: 'predict', class: 'toggle plain', 'aria-pressed': String(predict.on), onclick: () => predict.toggle(app),
}, say('predict.toggle'));

const lectureButton = (app) => html('button', {
  type: 'button', id: 'lecture', class: 'toggle plain', 'aria-pressed': String(app.view.lecture), onclick: () => app.lecture(!app.view.lecture),
}, say('control.lecture'));

function zoomPicker(app) {
  const slider = html('input', {
    id: 'zoom', type: 'range', min: 1, max: 6, step: 0.25, value: app.view.zoom,
    oninput: (event) => app.choose({ zoom: Number(event.target.value) }),
  });
  return labelled('zoom', 'control.zoom', slider);
}

function languagePicker(app) {
  const options = Object.entries(settings.languages).map(([code, name]) => html('option', {
    value: code, lang: code, selected: code === language,
  }, name));
  return labelled('language', 'control.language', html('select', { id: 'language', onchange: (event) => app.speak(event.target.value) }, options));
}

function themePicker() {
  const options = ['auto', 'light', 'dark'].map((theme) => html('option', {
    value: theme, selected: (document.documentElement.dataset.theme ?? 'auto') === theme,
  }, say(`theme.${theme}`)));
  return labelled('theme', 'control.theme', html('select', {
    id: 'theme', onchange: (event) => { document.documentElement.dataset.theme = event.target.value; repaint(); },
  }, options));
}

function buildWhatIf(app) {
  const host = document.getElementById('whatif');
  host.hidden = !settings.drops.length && !app.fails && !settings.compute;
  if (host.hidden) return;
  const toggle = (drop) => html('button', {
    type: 'button', class: 'toggle', id: `drop-${drop}`, 'aria-pressed': String(app.drops.has(drop)), onclick: () => app.drop(drop),
  }, dropName(drop));
  const failing = !app.fails ? null : html('button', {
    type: 'button', class: 'toggle schedule', id: 'schedule', 'aria-pressed': String(app.schedule), onclick: () => app.fail(!app.schedule),
  }, say('schedule.toggle'));
  const beside = html('label', { class: 'beside' }, html('input', {
    type: 'checkbox', id: 'beside', checked: app.beside, disabled: !app.scene, onchange: (event) => app.putBeside(event.target.checked),
  }), html('span', {}, say('whatif.beside')));
  clear(host, html('h2', {}, say('whatif.title')), html('p', {}, say('whatif.text')),
    html('div', { class: 'toggles', role: 'group', 'aria-label': say('whatif.title') }, settings.drops.filter((name) => app.has([name], null)).map(toggle), failing, computeControls(app), predictButton(app)), beside);
}

// The shape and the values, which the page computes with.
function computeControls(app) {
  if (!settings.compute) return null;
  if (!app.computing) return html('span', { class: 'note' }, say('compute.old'));
  const { largest, square } = settings.compute;
  const shape = app.shape ?? settings.compute.shape;
  const side = (i) => html('input', {
    id: `side-${'mkn'[i]}`, type: 'number', min: 1, max: largest, value: shape[i], 'aria-label': say('compute.side', { side: 'mkn'[i] }),
    onchange: ({ target }) => {
      const value = Math.max(1, Math.min(largest, Math.round(Number(target.value)) || 1));
      app.compute(square ? [value, value, value] : shape.with(i, value), app.seed);
    },
  });
  const values = html('select', { id: 'values', 'aria-label': say('compute.values'), onchange: ({ target }) => app.compute(app.shape, target.value === '' ? null : Number(target.value)) },
    ['', 0, 1, 2].map((seed) => html('option', { value: seed, selected: String(app.seed ?? '') === String(seed) },
      seed === '' ? say('compute.counting') : say('compute.random', { seed: seed + 1 }))));
  return html('span', { class: 'compute', role: 'group', 'aria-label': say('compute.shape') },
    html('span', {}, say('compute.shape')), side(0), '×', side(1), '×', side(2), values);
}

// Every step as a tick, phase by phase; for the mouse (the buttons and keys do the same).
function buildTimeline(app) {
  const host = document.getElementById('timeline');
  const groups = [];
  app.timeline.forEach((indexes, position) => {
    const phase = app.phaseAt(position);
    if (!groups.length || groups.at(-1).phase !== phase) groups.push({ phase, ticks: [] });
    const stage = app.stageAt(position);
    groups.at(-1).ticks.push(html('span', { class: `tick ${stage}`, 'data-position': position, onclick: () => app.go(position) }));
  });
  app.ticks = groups.flatMap((group) => group.ticks);
  clear(host, groups.map((group) => html('div', { class: 'phase-group', style: `flex-grow:${group.ticks.length}` },
    html('span', { class: 'phase-name' }, group.phase === null ? '·' : `${group.phase}`), html('div', { class: 'ticks' }, group.ticks))));
}

function showControls(app) {
  const last = app.timeline.length - 1;
  const phase = app.phaseAt(app.position);
  const set = (id, change) => change(document.getElementById(id));
  const off = (id, when) => set(id, (element) => element.setAttribute('aria-disabled', String(when)));
  off('first', app.position === 0); off('back', app.position === 0);
  off('next', app.position === last); off('last', app.position === last);
  set('play', (element) => {
    const key = app.playing ? 'control.pause' : 'control.play';
    element.setAttribute('aria-label', say(key)); element.title = say(key);
    element.querySelector('path').setAttribute('d', ICONS[app.playing ? 'pause' : 'play']);
  });
  set('phase', (element) => {
    element.value = phase ?? 0;
    element.setAttribute('aria-valuetext', say('control.where', whereOf(app)));
  });
  set('where', (element) => { element.textContent = say('control.where', whereOf(app)); });
  set('block', (element) => { element.value = app.panes[0].block; });
  set('speed', (element) => { element.value = app.speed; });
  for (const [position, tick] of app.ticks.entries()) {
    tick.classList.toggle('here', position === app.position);
    tick.classList.toggle('past', position < app.position);
  }
}

const whereOf = (app) => ({
  phase: app.phaseAt(app.position) ?? '–', last: app.phases - 1, step: app.position, steps: app.timeline.length - 1,
});

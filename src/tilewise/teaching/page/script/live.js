// The live page: an editor beside the pictures, or the file on disk; every change is run again by the server.

const live = {
  number: 0, wanted: 0, timer: null, busy: false, editor: null, arrived: location.hash,

  begin() {
    const host = document.getElementById('editor');
    host.hidden = false;
    document.body.classList.add('live');
    const { watch, saves, file } = settings.live;
    const pane = html('div', { class: 'pad' });
    clear(host, html('h2', {}, say(watch ? 'live.watch' : 'live.title', { file }),
      saves && !watch ? html('button', { type: 'button', id: 'save', class: 'toggle', onclick: () => this.save() }, say('live.save')) : null),
    pane, html('p', { id: 'said', class: 'said', role: 'status' }));
    this.editor = new Editor(pane, {
      text: settings.live.text, label: say('live.editor'), readonly: watch, changed: () => this.soon(), saved: () => this.save(),
    });
    this.number = settings.live.number;
    if (watch) this.listen();
    this.run();
  },

  soon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.run(), 40);
  },

  // Write the text to the file that was opened.
  async save() {
    if (settings.live.watch) return;
    try {
      const answer = await this.post('save');
      this.say(answer.error ?? say('live.saved', { file: settings.live.file }), Boolean(answer.error));
    } catch { this.say(say('live.gone'), true); }
  },

  // One request at a time: what is typed while it is under way is run after it, once.
  async run() {
    this.wanted += 1;
    if (this.busy) return;
    this.busy = true;
    for (let mine = 0; mine !== this.wanted;) {
      mine = this.wanted;
      try {
        await this.show(await this.post('run'), mine);
      } catch { this.say(say('live.gone'), true); }
      if (settings.live.watch) break; // the file's next text comes by itself
    }
    this.busy = false;
  },

  async post(what) { return (await fetch(what, { method: 'POST', body: this.editor.value })).json(); },

  async listen() {
    for (;;) {
      try {
        const answer = await (await fetch(`news?known=${this.number}`)).json();
        if (answer.number > this.number) {
          this.number = answer.number;
          this.wanted += 1; // a pending answer about an older text is not shown
          this.editor.value = answer.text;
          await this.show(answer, this.wanted);
        }
      } catch {
        this.say(say('live.gone'), true);
        await new Promise((done) => { setTimeout(done, 2000); });
      }
    }
  },

  say(sentence, bad) {
    const status = document.getElementById('said');
    status.textContent = sentence;
    status.classList.toggle('bad', bad);
  },

  // An answer about the newest text; where it has a race and typing pauses, the order of threads that fails follows.
  async show(answer, mine) {
    if (mine !== this.wanted) return;
    await this.draw(answer);
    if (answer.error || answer.scenes.length > 1 || !answer.scenes[0].trace.findings.some((f) => f.kind === 'race')) return;
    await new Promise((done) => { setTimeout(done, 300); });
    if (mine !== this.wanted) return;
    const order = await this.post('order');
    if (mine === this.wanted && !order.error) await this.draw(order);
  },

  async draw(answer) {
    document.body.classList.toggle('stale', Boolean(answer.error)); // the pictures are of an earlier text then
    const faults = answer.error ? [] : answer.scenes[0].trace.findings.filter((f) => f.line);
    this.editor.mark(answer.error ? (answer.line ? [{ line: answer.line, text: answer.error, severity: 'fault' }] : [])
      : [...faults].sort((a, b) => (a.severity === 'fault') - (b.severity === 'fault')).map((f) => ({ line: f.line, text: f.sentences[language], severity: f.severity })));
    if (answer.error) {
      this.say(answer.error, true);
      if (answer.line) this.editor.reveal(answer.line);
      return;
    }
    settings.scenes = answer.settings;
    app.runs = new Map(answer.scenes.map((scene, i) => [i, new Run(scene)]));
    if (app.failing < 0) app.schedule = false;
    if (document.body.classList.contains('unrun')) { // the first run of this text: go where the link says
      try { history.replaceState(null, '', this.arrived || '#'); } catch { /* a frame without an address */ }
      await app.follow();
      document.body.classList.remove('unrun');
      app.arrange(); // sizes can be measured now
      app.show();
    } else await app.open();
    const count = faults.filter((f) => f.severity === 'fault').length;
    this.say(count ? say('live.faults', { count, ms: answer.milliseconds }) : say('live.fine', { ms: answer.milliseconds }), count > 0);
    document.body.dataset.shown = String(Number(document.body.dataset.shown ?? 0) + 1);
  },
};

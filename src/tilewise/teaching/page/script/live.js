// The live page: an editor beside the pictures, or the file on disk; every change is run again by the server.

const live = {
  number: 0, wanted: 0, timer: null, arrived: location.hash,

  begin() {
    const host = document.getElementById('editor');
    host.hidden = false;
    const text = html('textarea', {
      id: 'text', spellcheck: 'false', autocomplete: 'off', autocapitalize: 'off', 'aria-label': say('live.editor'), readonly: settings.live.watch,
      oninput: () => this.soon(), onscroll: () => { document.getElementById('gutter').scrollTop = text.scrollTop; },
      onkeydown: (event) => this.indent(event),
    });
    text.value = settings.live.text;
    clear(host, html('h2', {}, say(settings.live.watch ? 'live.watch' : 'live.title', { file: settings.live.file })),
      html('div', { class: 'editing' }, html('pre', { id: 'gutter', 'aria-hidden': 'true' }), text),
      html('p', { id: 'said', class: 'said', role: 'status' }));
    this.numbers();
    this.number = settings.live.number;
    if (settings.live.watch) this.listen();
    this.run();
  },

  indent(event) {
    if (event.key !== 'Enter' || event.shiftKey) return;
    const { value, selectionStart: at } = event.target;
    const spaces = value.slice(value.lastIndexOf('\n', at - 1) + 1).match(/^[ \t]*/)[0];
    if (!spaces) return;
    event.preventDefault();
    event.target.setRangeText(`\n${spaces}`, at, event.target.selectionEnd, 'end');
    this.soon();
  },

  numbers(bad = null) {
    const text = document.getElementById('text');
    const count = text.value.split('\n').length;
    clear(document.getElementById('gutter'), Array.from({ length: count }, (_, i) => html('span', { class: i + 1 === bad ? 'bad' : null }, `${i + 1}\n`)));
    document.getElementById('gutter').scrollTop = text.scrollTop;
  },

  soon() {
    this.numbers();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.run(), 150);
  },

  async run() {
    this.wanted += 1;
    const mine = this.wanted;
    const text = document.getElementById('text').value;
    try {
      const answer = await (await fetch('run', { method: 'POST', body: text })).json();
      if (mine === this.wanted) await this.show(answer);
    } catch { this.say(say('live.gone'), true); }
  },

  async listen() {
    for (;;) {
      try {
        const answer = await (await fetch(`news?known=${this.number}`)).json();
        if (answer.number > this.number) {
          this.number = answer.number;
          this.wanted += 1; // a pending answer about an older text is not shown
          document.getElementById('text').value = answer.text;
          await this.show(answer);
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

  async show(answer) {
    this.numbers(answer.line ?? null);
    document.body.classList.toggle('stale', Boolean(answer.error)); // the pictures are of an earlier text then
    if (answer.error) {
      this.say(answer.error, true);
      document.querySelector('#gutter .bad')?.scrollIntoView({ block: 'nearest' });
      return;
    }
    settings.scenes = answer.settings;
    app.runs = new Map(answer.scenes.map((scene, i) => [i, new Run(scene)]));
    if (app.failing < 0) app.schedule = false;
    if (document.body.classList.contains('unrun')) { // the first run of this text: go where the link says
      try { history.replaceState(null, '', this.arrived || '#'); } catch { /* a frame without an address */ }
      await app.follow();
      document.body.classList.remove('unrun');
      app.show(); // sizes can be measured now
    } else await app.open();
    const faults = answer.scenes[0].trace.findings.filter((f) => f.severity === 'fault').length;
    this.say(faults ? say('live.faults', { count: faults, ms: answer.milliseconds }) : say('live.fine', { ms: answer.milliseconds }), faults > 0);
    document.body.dataset.shown = String(Number(document.body.dataset.shown ?? 0) + 1);
  },
};

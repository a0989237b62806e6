// Predict, then reveal: before a load or a store is shown, the page asks for the cell that the chosen thread accesses. A
// click on a cell answers; a step forward shows it without an answer.

const predict = {
  on: false, posed: null, verdict: null, // the position that is asked about, with its cell; what an answer got

  toggle(app) {
    this.on = !this.on;
    this.posed = null; this.verdict = null;
    buildControls(app);
    app.show();
    document.getElementById('predict').focus();
  },

  // Whether a step forward is held back by a question; the same step again reveals it.
  holds(app, position) {
    const known = this.posed?.position === position;
    if (known || !this.on || app.playing || position !== app.position + 1) {
      if (!known) this.verdict = null;
      this.posed = null;
      return false;
    }
    this.verdict = null;
    this.posed = this.question(app, position);
    if (this.posed) app.show();
    return this.posed !== null;
  },

  question(app, position) {
    const [pane] = app.panes;
    const { run, view } = pane;
    const frame = run.block(pane.block).frames[app.timeline[position]?.[0]];
    if (!frame || !['load', 'store', 'use'].includes(frame.stage)) return null;
    const accesses = frame.rows.filter((i) => run.columns.thread[i] === view.thread).map((i) => run.access(i));
    const found = accesses.find((access) => access && access.how !== 'filled' && run.roles[access.array]);
    return found ? { position, access: found } : null;
  },

  // A cell was chosen as the answer.
  answer(app, role, cell) {
    if (!this.posed) return;
    const { position, access } = this.posed;
    const right = app.panes[0].run.roles[access.array] === role && same(access.requested, cell);
    const named = cellName(access.array, access.requested);
    const verdict = right ? say('predict.right', { cell: named })
      : say('predict.wrong', { guess: cellName(app.panes[0].run.matrices[role].name, cell), cell: named });
    app.go(position);
    this.verdict = verdict;
    app.show();
  },

  // The caption with the question in its place, or with what the answer got.
  caption(run, caption) {
    if (this.verdict) caption.text.unshift(this.verdict);
    if (!this.posed) return caption;
    const { access } = this.posed;
    const values = { array: access.array, thread: run.threadName(access.thread) };
    return { title: say('predict.title'), text: [say(access.store ? 'predict.store' : 'predict.load', values)], kinds: [], mine: '' };
  },
};

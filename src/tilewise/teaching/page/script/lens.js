// A lens: another view of the same step. Traffic beside the naive kernel, warps at memory, the roofline.

const LENSES = { traffic: drawTraffic, warps: drawWarps, roofline: drawRoofline };

// The card's tabs and its picture; the choice is the page's, so that two panes look through the same lens.
function drawLens(host, run, blockNumber, state, view, choose) {
  const names = Object.keys(LENSES);
  const at = names.includes(view.lens) ? view.lens : names[0];
  const focus = host.contains(document.activeElement) && document.activeElement.classList.contains('lens-tab');
  const tab = (name) => html('button', {
    type: 'button', role: 'tab', class: 'lens-tab', tabindex: name === at ? 0 : -1, 'aria-selected': String(name === at),
    'data-lens': name, onclick: () => choose({ lens: name }),
  }, say(`lens.${name}`));
  const tabs = html('div', { class: 'lens-tabs', role: 'tablist', 'aria-label': say('card.lens') }, names.map(tab));
  tabs.addEventListener('keydown', (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    choose({ lens: names[(names.indexOf(at) + step + names.length) % names.length] });
  });
  const body = html('div', { class: 'lens-body', role: 'tabpanel', 'aria-label': say(`lens.${at}`), tabindex: 0 });
  clear(host, tabs, body);
  LENSES[at](body, run, blockNumber, state);
  if (focus) tabs.querySelector('[aria-selected="true"]').focus();
}

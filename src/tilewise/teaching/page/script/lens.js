// A lens: another view of the same step. Bytes between the memories, traffic beside the naive kernel, warps at memory,
// latency over time, the roofline.

const LENSES = { memory: drawMemory, traffic: drawTraffic, warps: drawWarps, time: drawTime, roofline: drawRoofline };

// The card's tabs and its picture; the choice is the page's, so that two panes look through the same lens.
function drawLens(host, run, blockNumber, state, view, choose) {
  const names = Object.keys(LENSES);
  const at = names.includes(view.lens) ? view.lens : names[0];
  const focus = host.contains(document.activeElement) && document.activeElement.classList.contains('lens-tab');
  const turn = (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    choose({ lens: names[(names.indexOf(at) + step + names.length) % names.length] });
  };
  const tab = (name) => part('button', {
    type: 'button', role: 'tab', class: 'lens-tab', tabindex: name === at ? 0 : -1, 'aria-selected': String(name === at),
    'data-lens': name, onclick: () => choose({ lens: name }),
  }, say(`lens.${name}`));
  const tabs = part('div', { class: 'lens-tabs', role: 'tablist', 'aria-label': say('card.lens'), onkeydown: turn }, names.map(tab));
  const body = part('div', { class: `lens-body lens-${at}`, role: 'tabpanel', 'aria-label': say(`lens.${at}`), tabindex: 0 },
    LENSES[at](run, blockNumber, state));
  clear(host, tabs, body);
  if (focus) host.querySelector('[aria-selected="true"]').focus();
}

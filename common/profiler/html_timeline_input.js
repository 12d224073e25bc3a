// What the mouse and the keys do, the tooltip, the panel and the search.

const element = (id) => document.getElementById(id);

function textElement(tag, text) {
  return Object.assign(document.createElement(tag), {textContent: text});
}

function appendFacts(list, facts) {
  list.replaceChildren();
  for (const [term, text] of facts) {
    list.append(textElement('dt', say(term)), textElement('dd', text));
  }
}

// Finds what is at a place of the canvas: {row}, and if there is a call {span}
// with the number of `others` that are drawn within the same pixel.
function hitAt(x, y) {
  if (x < GUTTER || y < AXIS) return null;
  const row = rows.find((r) => y >= rowY(r) && y < rowY(r) + r.height);
  if (!row) return null;
  const lane = row.lanes[Math.floor((y - rowY(row)) / LANE_HEIGHT)];
  if (!lane) return {row};
  // Slices too narrow for the mouse are hit from beside them.
  const reach = 2;
  const first = firstAbove(lane.end, timeAt(x - reach), 0, lane.count, true);
  const end = firstAbove(lane.begin, timeAt(x + reach), first, lane.count);
  if (first === end) return {row};
  let best = first;
  const distance = (k) =>
      Math.max(lane.begin[k] - timeAt(x), timeAt(x) - lane.end[k], 0);
  for (let k = first; k < Math.min(end, first + 1000); ++k) {
    if (distance(k) < distance(best)) best = k;
  }
  const pixel = Math.floor(xOf(lane.begin[best]));
  const narrow = xOf(lane.end[best]) - xOf(lane.begin[best]) < 1.5;
  const others = !narrow ? 0 :
      firstAbove(lane.begin, timeAt(pixel + 1), 0, lane.count, true) -
      firstAbove(lane.begin, timeAt(pixel), 0, lane.count, true) - 1;
  return {row, span: lane.spans[best], others};
}

function memoryFacts(memory, time) {
  const k = firstAbove(memory.time, time, 0, memory.time.length) - 1;
  if (k < 0) return null;
  return [
    ['at', timeText(time)],
    ['in use', bytesText(memory.allocated[k])],
    ['in flight', bytesText(memory.pending[k])],
    ['reserved', bytesText(memory.reserved[k])],
  ];
}

function showTooltip(x, y) {
  const tooltip = element('tooltip');
  tooltip.hidden = true;
  const box = canvas.getBoundingClientRect();
  const hit = hitAt(x - box.left, y - box.top);
  if (!hit) return;
  let title;
  let facts;
  if (hit.row.memory) {
    title = hit.row.label;
    facts = memoryFacts(hit.row.memory, timeAt(x - box.left));
  } else if (hit.span !== undefined) {
    title = nameOf(hit.span);
    facts = factsOf(hit.span, true);
    if (hit.others > 0) {
      const more = hit.others.toLocaleString('en');
      facts.push(['in this pixel', say('{0} more; zoom in', more)]);
    }
  }
  if (!facts) return;
  const list = document.createElement('dl');
  appendFacts(list, facts);
  tooltip.replaceChildren(textElement('strong', title), list);
  tooltip.hidden = false;
  const room = tooltip.getBoundingClientRect();
  const beside = (at, size, end) =>
      Math.max(0, at + 14 + size > end ? at - 14 - size : at + 14) + 'px';
  tooltip.style.left = beside(x, room.width, innerWidth);
  tooltip.style.top = beside(y, room.height, innerHeight);
}

function hideTooltip() {
  element('tooltip').hidden = true;
}

function select(span) {
  selected = span;
  const panel = element('panel');
  panel.hidden = span < 0;
  if (span >= 0) {
    element('panel-name').textContent = nameOf(span);
    appendFacts(element('panel-facts'), factsOf(span, false));
    panel.scrollTop = 0;
  }
  requestDraw();
}

// Moves the view so that the selected request and its work are visible.
function reveal() {
  if (selected < 0) return;
  const i = selected;
  const to = hasWork(i) ? Math.max(hostEnd[i], workEnd[i]) : hostEnd[i];
  if (hostBegin[i] < view.from || to > view.to) {
    const length = Math.max(view.to - view.from, (to - hostBegin[i]) * 1.2);
    const middle = (hostBegin[i] + to) / 2;
    setView(middle - length / 2, middle + length / 2);
  }
  const row = requestRow(i);
  const top = row.top + level[i] * LANE_HEIGHT;
  if (top < scroll.scrollTop ||
      top + LANE_HEIGHT + AXIS > scroll.scrollTop + height) {
    scroll.scrollTop = Math.max(0, top - height / 3);
  }
}

function zoomToSelected() {
  if (selected < 0) return;
  const i = selected;
  const to = hasWork(i) ? Math.max(hostEnd[i], workEnd[i]) : hostEnd[i];
  const margin = (to - hostBegin[i]) * 0.1;
  setView(hostBegin[i] - margin, to + margin);
  reveal();
}

// To the next call (direction 1) or the previous one (-1); while a search is
// on, to the next or previous match.
function step(direction) {
  let i = selected;
  for (let tried = 0; tried < spanCount; ++tried) {
    i = i < 0 && direction < 0 ? spanCount - 1 :
        (i + direction + spanCount) % spanCount;
    if (!searching || matches[i]) {
      select(i);
      reveal();
      return;
    }
  }
}

function runSearch() {
  const text = element('search').value;
  searching = text.trim() !== '';
  const count = search(text);
  element('found').textContent = searching ?
      say('{0} of {1} calls', count.toLocaleString('en'),
          spanCount.toLocaleString('en')) : '';
  requestDraw();
}

const centre = () => (view.from + view.to) / 2;
const length = () => view.to - view.from;
const KEYS = {
  w: () => zoom(1 / 1.5, centre()),
  s: () => zoom(1.5, centre()),
  a: () => pan(-0.15 * length()),
  d: () => pan(0.15 * length()),
  0: showEverything,
  f: zoomToSelected,
  n: () => step(1),
  p: () => step(-1),
  '/': () => element('search').focus(),
  Escape: () => {
    element('search').value = '';
    runSearch();
    select(-1);
  },
};
KEYS.ArrowUp = KEYS.w;
KEYS.ArrowDown = KEYS.s;
KEYS.ArrowLeft = KEYS.a;
KEYS.ArrowRight = KEYS.d;

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const inSearch = event.target === element('search');
  if (inSearch && event.key !== 'Escape') return;
  const letter = event.key.length === 1;
  const action = KEYS[letter ? event.key.toLowerCase() : event.key];
  if (!action) return;
  event.preventDefault();
  if (inSearch) element('search').blur();
  hideTooltip();
  action();
});

canvas.addEventListener('wheel', (event) => {
  event.preventDefault();
  // Some browsers count in lines or pages.
  const unit = [1, 16, 400][event.deltaMode];
  const x = event.clientX - canvas.getBoundingClientRect().left;
  if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
    const pixels = (event.deltaX || event.deltaY) * unit;
    pan(pixels / (width - GUTTER) * length());
  } else {
    zoom(Math.exp(event.deltaY * unit * 0.002), timeAt(Math.max(x, GUTTER)));
  }
  hideTooltip();
}, {passive: false});

// While a button is down: where it went down, and where it was last.
let drag = null;

canvas.addEventListener('pointerdown', (event) => {
  if (event.button !== 0) return;
  canvas.setPointerCapture(event.pointerId);
  drag = {x: event.clientX, y: event.clientY, lastX: event.clientX,
          lastY: event.clientY, moved: false};
});

canvas.addEventListener('pointermove', (event) => {
  if (!drag) {
    showTooltip(event.clientX, event.clientY);
    return;
  }
  if (Math.hypot(event.clientX - drag.x, event.clientY - drag.y) > 4) {
    drag.moved = true;
    canvas.classList.add('dragging');
    hideTooltip();
  }
  if (!drag.moved) return;
  pan((drag.lastX - event.clientX) / (width - GUTTER) * length());
  scroll.scrollTop += drag.lastY - event.clientY;
  drag.lastX = event.clientX;
  drag.lastY = event.clientY;
});

canvas.addEventListener('pointerup', (event) => {
  if (drag && !drag.moved) {
    const box = canvas.getBoundingClientRect();
    const hit = hitAt(event.clientX - box.left, event.clientY - box.top);
    select(hit && hit.span !== undefined ? hit.span : -1);
  }
  drag = null;
  canvas.classList.remove('dragging');
});

canvas.addEventListener('pointercancel', () => {
  drag = null;
  canvas.classList.remove('dragging');
});
canvas.addEventListener('pointerleave', hideTooltip);

element('search').addEventListener('input', runSearch);
element('search-form').addEventListener('submit', (event) => {
  event.preventDefault();
  step(1);
});
element('panel-zoom').addEventListener('click', zoomToSelected);
element('panel-close').addEventListener('click', () => select(-1));
scroll.addEventListener('scroll', requestDraw);
matchMedia('(prefers-color-scheme: dark)')
    .addEventListener('change', readColours);
new ResizeObserver(requestDraw).observe(scroll);

function appendItems(id, texts) {
  for (const text of texts) element(id).append(textElement('li', text));
}

const title = asked.get('title') || data.title;
document.title = title;
element('title').textContent = title;
element('summary').textContent =
    say(spanCount === 1 ? '{0} call in {1}.' : '{0} calls in {1}.',
        spanCount.toLocaleString('en'), timeText(data.duration));
appendItems('devices', data.devices);
appendItems('notes', data.notes);
for (const [id, text] of [['devices', say('Devices')], ['notes', say('Notes')],
                          ['panel', say('The selected call')],
                          ['canvas', say('Timeline of {0}',
                                         element('summary').textContent)]]) {
  element(id).setAttribute('aria-label', text);
}
readColours();
showEverything();

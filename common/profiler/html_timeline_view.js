// Drawing: draws the rows and the part of the time that are visible. Of a row
// it looks only at visible slices, and at most at one for each pixel, however
// many there are.

const canvas = document.getElementById('canvas');
const scroll = document.getElementById('scroll');
const pen = canvas.getContext('2d');
const GUTTER = 172;
const AXIS = 24;
const FONT = '12px system-ui, sans-serif';
const SHORTEST_VIEW = 20;  // nanoseconds

const view = {from: 0, to: duration};
let selected = -1;
let searching = false;
let width = 0;
let height = 0;
let colours = {};
let drawRequested = false;

const xOf = (time) =>
    GUTTER + (time - view.from) / (view.to - view.from) * (width - GUTTER);
const timeAt = (x) =>
    view.from + (x - GUTTER) / (width - GUTTER) * (view.to - view.from);

function setView(from, to) {
  const length =
      Math.min(Math.max(to - from, SHORTEST_VIEW), duration * 1.04);
  const middle = (from + to) / 2;
  const margin = duration * 0.02;
  view.from = Math.min(Math.max(middle - length / 2, -margin),
                       duration + margin - length);
  view.to = view.from + length;
  requestDraw();
}

function showEverything() {
  setView(-duration, 2 * duration);
}

// Zooms around a time that keeps its place on the screen.
function zoom(factor, centre) {
  const length = view.to - view.from;
  const wanted = Math.min(Math.max(length * factor, SHORTEST_VIEW),
                          duration * 1.04);
  const from = centre - (centre - view.from) * wanted / length;
  setView(from, from + wanted);
}

function pan(nanos) {
  setView(view.from + nanos, view.to + nanos);
}

function requestDraw() {
  if (drawRequested) return;
  drawRequested = true;
  requestAnimationFrame(() => {
    drawRequested = false;
    fit();
    draw();
  });
}

function readColours() {
  const style = getComputedStyle(document.documentElement);
  colours = {dark: matchMedia('(prefers-color-scheme: dark)').matches};
  for (const name of ['page', 'text', 'faint', 'line', 'stripe', 'host',
                      'host-text', 'frame', 'frame-fill', 'accent', 'blocked',
                      'in-use', 'in-flight']) {
    colours[name] = style.getPropertyValue('--' + name).trim();
  }
  requestDraw();
}

// The hue of an operation's name: the same in every profile, unless another
// name has one like it.
const hues = new Map();
function hueOf(name) {
  if (hues.has(name)) return hues.get(name);
  let hue = 2166136261;
  for (const c of data.texts[name]) {
    hue = Math.imul(hue ^ c.codePointAt(0), 16777619) >>> 0;
  }
  const near = (other) => Math.abs((hue - other + 540) % 360 - 180) < 15;
  hue = (hue ^ hue >>> 16) % 360;
  const taken = [...hues.values()];
  for (let n = 0; n < 12 && taken.some(near); ++n) hue = (hue + 137) % 360;
  hues.set(name, hue);
  return hue;
}
for (let i = 0; i < spanCount; ++i) {
  if (spans.kind[i] === KIND.operation || spans.kind[i] === KIND.view) {
    hueOf(spans.name[i]);
  }
}

function coloursOf(i) {
  const kind = spans.kind[i];
  if (kind === KIND.range) {
    return {fill: colours['frame-fill'], text: colours.text,
            frame: colours.frame};
  }
  if (kind === KIND.read || kind === KIND.wait) {
    return {fill: colours.host, text: colours['host-text']};
  }
  if (kind === KIND['queue full']) {
    return {fill: colours.blocked, text: '#ffffff'};
  }
  const hue = hueOf(spans.name[i]);
  return colours.dark ?
      {fill: `hsl(${hue}, 42%, 34%)`, text: '#f5f5f5'} :
      {fill: `hsl(${hue}, 58%, 73%)`, text: '#141414'};
}

// Makes the canvas as large as its place. Must not be called within the
// observer of that place, which it may change: a scroll bar comes or goes.
function fit() {
  const ratio = window.devicePixelRatio || 1;
  if (width === scroll.clientWidth && height === scroll.clientHeight &&
      canvas.width === Math.round(width * ratio)) {
    return;
  }
  width = scroll.clientWidth;
  height = scroll.clientHeight;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = width + 'px';
  canvas.style.height = height + 'px';
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  const last = rows[rows.length - 1];
  const bottom = AXIS + (last ? last.top + last.height + ROW_GAP : 40);
  document.getElementById('height').style.height =
      Math.max(0, bottom - height) + 'px';
}

function drawText(text, x, y, room) {
  if (room < 14) return;
  pen.save();
  pen.beginPath();
  pen.rect(x, y - 10, room, 20);
  pen.clip();
  pen.fillText(text, x, y);
  pen.restore();
}

function drawSlice(i, left, right, y) {
  const from = Math.max(left, GUTTER - 2);
  const to = Math.min(right, width + 2);
  // A gap shows where one slice ends and the next begins.
  const wide = Math.max(1, to - from - (to - from > 3 ? 1 : 0));
  const colour = coloursOf(i);
  pen.globalAlpha = searching && !matches[i] ? 0.22 : 1;
  pen.fillStyle = colour.fill;
  pen.fillRect(from, y, wide, LANE_HEIGHT - 2);
  if (colour.frame && wide > 2) {
    pen.strokeStyle = colour.frame;
    pen.lineWidth = 1;
    pen.strokeRect(from + 0.5, y + 0.5, wide - 1, LANE_HEIGHT - 3);
  }
  if (wide > 22) {
    pen.fillStyle = colour.text;
    const start = Math.max(from, GUTTER) + 4;
    drawText(nameOf(i), start, y + LANE_HEIGHT / 2 - 0.5,
             from + wide - start - 2);
  }
  pen.globalAlpha = 1;
  if (searching && matches[i]) outline(from, y, wide, 1.5);
}

function outline(x, y, wide, thickness) {
  pen.strokeStyle = colours.accent;
  pen.lineWidth = thickness;
  pen.strokeRect(x + 0.5, y + 0.5, Math.max(wide - 1, 1), LANE_HEIGHT - 3);
}

// The slices k to end of a lane, all within a pixel: the longest's colour.
function drawMerged(lane, k, end, x, nanosPerPixel, y) {
  let busy = 0;
  let longest = k;
  let matching = false;
  for (let n = k; n < end; ++n) {
    busy += lane.time(n);
    if (lane.time(n) > lane.time(longest)) longest = n;
    matching = matching || matches[lane.spans[n]] > 0;
  }
  pen.globalAlpha = searching && !matching ?
      0.15 : Math.min(1, Math.max(0.5, busy / nanosPerPixel));
  pen.fillStyle = searching && matching ?
      colours.accent : coloursOf(lane.spans[longest]).fill;
  pen.fillRect(x, y, 1, LANE_HEIGHT - 2);
  pen.globalAlpha = 1;
}

function drawLane(lane, y) {
  const nanosPerPixel = (view.to - view.from) / (width - GUTTER);
  const end = firstAbove(lane.begin, view.to, 0, lane.count);
  let k = firstAbove(lane.end, view.from, 0, end, true);
  while (k < end) {
    const left = xOf(lane.begin[k]);
    const right = xOf(lane.end[k]);
    if (right - left >= 1.5) {
      drawSlice(lane.spans[k], left, right, y);
      ++k;
      continue;
    }
    const pixel = Math.floor(left);
    const first = k++;
    while (k < end && xOf(lane.end[k]) < pixel + 1.5 &&
           xOf(lane.begin[k]) < pixel + 1) {
      ++k;
    }
    drawMerged(lane, first, k, pixel, nanosPerPixel, y);
  }
}

// Draws the allocated memory, and above it what only queued work still needs.
function drawMemory(memory, top) {
  const bottom = top + MEMORY_HEIGHT;
  const scale = (MEMORY_HEIGHT - 3) / memory.peak;
  const count = memory.time.length;
  const first = Math.max(
      firstAbove(memory.time, view.from, 0, count) - 1, 0);
  for (let k = first; k < count && memory.time[k] <= view.to; ++k) {
    // Whole pixels: halves would leave seams.
    const left = Math.floor(Math.max(xOf(memory.time[k]), GUTTER));
    const right = Math.floor(Math.min(
        k + 1 < count ? xOf(memory.time[k + 1]) : xOf(duration), width));
    const wide = Math.max(right - left, 1);
    const used = memory.allocated[k] * scale;
    const flying = memory.pending[k] * scale;
    pen.fillStyle = colours['in-use'];
    pen.fillRect(left, bottom - used, wide, used);
    pen.fillStyle = colours['in-flight'];
    pen.fillRect(left, bottom - used - flying, wide, flying);
  }
}

// The distance between two ticks: 1, 2 or 5 times a power of ten.
function tickStep() {
  const least = (view.to - view.from) * 110 / (width - GUTTER);
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].find((times) => times * power >= least) * power;
}

// A number of nanoseconds, in the unit that suits `size`, exact to `step`.
function roundTimeText(nanos, size, step) {
  const [unit, scale] = size < 1e3 ? ['ns', 1] : size < 1e6 ? ['us', 1e3] :
                        size < 1e9 ? ['ms', 1e6] : ['s', 1e9];
  const digits = Math.max(0, Math.ceil(Math.log10(scale / step) - 1e-9));
  return (nanos / scale).toFixed(digits) + ' ' + unit;
}

// Times count from the beginning, or, if that is far away, from a closer round
// time, which stands at the left: "561.418 ms +".
function drawAxis(step) {
  const length = view.to - view.from;
  const round = 10 ** Math.ceil(Math.log10(length));
  const base =
      view.from < 10 * round ? 0 : Math.floor(view.from / round) * round;
  pen.fillStyle = colours.page;
  pen.fillRect(0, 0, width, AXIS);
  pen.fillStyle = colours.faint;
  pen.strokeStyle = colours.line;
  pen.lineWidth = 1;
  pen.beginPath();
  pen.moveTo(0, AXIS - 0.5);
  pen.lineTo(width, AXIS - 0.5);
  pen.stroke();
  for (let n = Math.ceil(view.from / step); n * step <= view.to; ++n) {
    const label = roundTimeText(n * step - base, view.to - base, step);
    const x = xOf(n * step) + 4;
    if (x + pen.measureText(label).width > width) break;
    pen.fillText(label, x, AXIS / 2);
  }
  pen.fillStyle = colours.page;
  pen.fillRect(0, 0, GUTTER - 1, AXIS - 1);
  pen.fillStyle = colours.faint;
  pen.fillText(base > 0 ? roundTimeText(base, base, round) + ' +' :
                   say('in sight: {0}', timeText(length)), 8, AXIS / 2);
}

function drawGrid(step) {
  pen.strokeStyle = colours.line;
  pen.lineWidth = 1;
  pen.beginPath();
  for (let n = Math.ceil(view.from / step); n * step <= view.to; ++n) {
    const x = Math.round(xOf(n * step)) + 0.5;
    pen.moveTo(x, 0);
    pen.lineTo(x, height);
  }
  pen.stroke();
}

const rowY = (row) => AXIS + row.top - scroll.scrollTop;

function drawLabel(row, y) {
  pen.fillStyle = colours.text;
  const middle = row.memory ? y + 14 : y + LANE_HEIGHT / 2 - 1;
  drawText(row.label, 8, middle, GUTTER - 16);
  if (row.memory) {
    pen.fillStyle = colours.faint;
    drawText(say('at most {0}', bytesText(row.memory.peak)), 8, middle + 17,
             GUTTER - 16);
  }
}

// The arrow of the selected call, from its request to its execution.
function drawSelection() {
  if (selected < 0) return;
  const top = rowY(requestRow(selected)) + level[selected] * LANE_HEIGHT;
  frameOf(hostBegin[selected], hostEnd[selected], top);
  if (!hasWork(selected)) return;
  const workTop = rowY(workRow(selected));
  frameOf(workBegin[selected], workEnd[selected], workTop);
  // If the work began before the call returned, so does the arrow.
  const x0 = xOf(Math.min(hostEnd[selected], workBegin[selected]));
  const y0 = top + LANE_HEIGHT - 2;
  const x1 = xOf(workBegin[selected]);
  const y1 = workTop + LANE_HEIGHT / 2 - 1;
  const reach = Math.max(12, Math.min(60, Math.abs(x1 - x0) / 2));
  pen.strokeStyle = colours.accent;
  pen.fillStyle = colours.accent;
  pen.lineWidth = 1.5;
  pen.beginPath();
  pen.moveTo(x0, y0);
  pen.bezierCurveTo(x0, y0 + reach, x1 - reach, y1, x1 - 6, y1);
  pen.stroke();
  pen.beginPath();
  pen.moveTo(x1, y1);
  pen.lineTo(x1 - 8, y1 - 4);
  pen.lineTo(x1 - 8, y1 + 4);
  pen.fill();
}

function frameOf(begin, end, y) {
  const left = Math.max(xOf(begin), GUTTER - 4);
  const right = Math.min(xOf(end), width + 4);
  if (right < GUTTER || left > width) return;
  outline(left, y, right - left, 2);
}

// Where calls were left out: for each range a line where they begin. Of many
// lines beside each other, most are only a tick below the rows.
function drawCuts() {
  const last = rows[rows.length - 1];
  if (!last) return;
  const bottom = Math.min(height, rowY(last) + last.height + 24);
  pen.strokeStyle = pen.fillStyle = colours.accent;
  pen.lineWidth = 1;
  pen.setLineDash([4, 4]);
  let free = GUTTER;
  for (const x of data.cut_at.map(xOf)) {
    pen.beginPath();
    pen.moveTo(x, x < free ? bottom - 4 : AXIS);
    pen.lineTo(x, bottom);
    pen.stroke();
    if (x < free) continue;
    pen.fillText(say('cut here'), x + 4, bottom - 12);
    free = x + 60;
  }
  pen.setLineDash([]);
}

function draw() {
  const step = tickStep();
  pen.font = FONT;
  pen.textBaseline = 'middle';
  pen.fillStyle = colours.page;
  pen.fillRect(0, 0, width, height);
  const visible = rows.filter(
      (row) => rowY(row) < height && rowY(row) + row.height > AXIS);
  for (const row of visible) {
    pen.fillStyle = colours.stripe;
    pen.fillRect(0, rowY(row) - 3, width, row.height + 4);
  }
  drawGrid(step);
  pen.save();
  pen.beginPath();
  pen.rect(GUTTER, AXIS, width - GUTTER, height - AXIS);
  pen.clip();
  for (const row of visible) {
    const y = rowY(row);
    row.lanes.forEach((lane, l) => drawLane(lane, y + l * LANE_HEIGHT));
    if (row.memory) drawMemory(row.memory, y);
  }
  drawCuts();
  drawSelection();
  pen.restore();
  for (const row of visible) drawLabel(row, rowY(row));
  if (rows.length === 0) {
    pen.fillStyle = colours.text;
    pen.fillText(say('Nothing was recorded.'), GUTTER, AXIS + 20);
  }
  drawAxis(step);
}

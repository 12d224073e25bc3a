// What is to be drawn: the calls of the profile, in rows, and texts about them.

const spans = data.spans;
const spanCount = spans.kind.length;
const KIND = Object.fromEntries(data.kinds.map((name, i) => [name, i]));
const MEASURED = 0;

// Times are nanoseconds from the beginning of the recording.
const hostBegin = new Float64Array(spanCount);
const hostEnd = new Float64Array(spanCount);
const workBegin = new Float64Array(spanCount);
const workEnd = new Float64Array(spanCount);
const level = new Int32Array(spanCount);
const matches = new Uint8Array(spanCount);
let duration = Math.max(data.duration, 1000);
for (let i = 0, now = 0; i < spanCount; ++i) {
  now += spans.begin[i];
  hostBegin[i] = now;
  hostEnd[i] = now + spans.host[i];
  workBegin[i] = now + spans.drawn_begin[i];
  workEnd[i] = workBegin[i] + spans.drawn[i];
  const parent = spans.parent[i];
  level[i] = parent < 0 ? 0 : level[parent] + 1;
  duration = Math.max(duration, hostEnd[i]);
  if (hasWork(i)) duration = Math.max(duration, workEnd[i]);
}

function hasWork(i) {
  return spans.stream[i] >= 0 && spans.device_time[i] === MEASURED;
}

function nameOf(i) {
  return data.texts[spans.name[i]];
}

// The first index in [low, high) at which the rising `values` are above
// `bound`, or, with `orEqual`, not below it.
function firstAbove(values, bound, low, high, orEqual = false) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (orEqual ? values[middle] >= bound : values[middle] > bound) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

// Slices side by side, by time: one level of a thread's calls, or the work of a
// stream.
class Lane {
  constructor(indices, begins, ends) {
    this.spans = Int32Array.from(indices);
    this.count = this.spans.length;
    this.begin = Float64Array.from(indices, (i) => begins[i]);
    this.end = Float64Array.from(indices, (i) => ends[i]);
  }

  time(k) {
    return this.end[k] - this.begin[k];
  }
}

const LANE_HEIGHT = 19;
const MEMORY_HEIGHT = 48;
const ROW_GAP = 9;

// From top to bottom: {label, note, lanes, memory, top, height}. Where a call
// is drawn: {row, lane}, for requests by thread and level, for work by stream.
const rows = [];

function addRow(row) {
  const last = rows[rows.length - 1];
  row.top = last ? last.top + last.height + ROW_GAP : ROW_GAP;
  row.height = row.memory ? MEMORY_HEIGHT : LANE_HEIGHT * row.lanes.length;
  rows.push(row);
}

function makeRows() {
  const requests = data.threads.map(() => []);
  const work = data.streams.map(() => []);
  for (let i = 0; i < spanCount; ++i) {
    const levels = requests[spans.thread[i]];
    while (levels.length <= level[i]) levels.push([]);
    levels[level[i]].push(i);
    if (hasWork(i)) work[spans.stream[i]].push(i);
  }
  data.threads.forEach((name, t) => {
    const lanes = requests[t].map((of) => new Lane(of, hostBegin, hostEnd));
    if (lanes.length > 0) addRow({label: name, thread: t, lanes});
  });
  data.devices.forEach((_, d) => {
    data.streams.forEach((stream, s) => {
      if (stream.device !== d) return;
      const order =
          work[s].sort((a, b) => workBegin[a] - workBegin[b] || a - b);
      const lanes = [new Lane(order, workBegin, workEnd)];
      addRow({label: stream.name, stream: s, lanes});
    });
    for (const memory of data.memory) {
      if (memory.device !== d) continue;
      memory.peak = 1;
      memory.time.forEach((_, k) => {
        const both = memory.allocated[k] + memory.pending[k];
        memory.peak = Math.max(memory.peak, both);
      });
      const [what, device] = memory.name.split(' of ');
      const label = what === 'memory' ? 'memory of {0}' : 'pinned memory of {0}';
      addRow({label: say(label, device), lanes: [], memory});
    }
  });
}
makeRows();

function requestRow(i) {
  return rows.find((row) => row.thread === spans.thread[i]);
}

function workRow(i) {
  return rows.find((row) => row.stream === spans.stream[i]);
}

// Marks the calls whose name contains the text; returns how many.
function search(text) {
  const wanted = text.trim().toLowerCase();
  const found = data.texts.map(
      (known) => wanted !== '' && known.toLowerCase().includes(wanted));
  let count = 0;
  for (let i = 0; i < spanCount; ++i) {
    matches[i] = found[spans.name[i]] ? 1 : 0;
    count += matches[i];
  }
  return count;
}

// Three digits and a unit, as in the tables: "85 ns", "1.25 us", "12.3 ms".
function timeText(nanos) {
  const size = Math.abs(nanos);
  if (size < 1000) return Math.round(nanos) + ' ns';
  for (const [unit, scale] of [['us', 1e3], ['ms', 1e6], ['s', 1e9]]) {
    const value = nanos / scale;
    if (Math.abs(value) < 999.5 || unit === 's') {
      const shown = Math.abs(value);
      const digits = shown < 9.995 ? 2 : shown < 99.95 ? 1 : 0;
      return value.toFixed(digits) + ' ' + unit;
    }
  }
}

// Adds the exact number if the short text leaves digits out.
function exactTimeText(nanos) {
  const short = timeText(nanos);
  return Math.abs(nanos) < 1000 ?
      short : short + ' (' + nanos.toLocaleString('en') + ' ns)';
}

function bytesText(bytes) {
  if (Math.abs(bytes) < 1024) return bytes + ' B';
  let value = bytes;
  for (const unit of ['KiB', 'MiB', 'GiB', 'TiB']) {
    value /= 1024;
    if (Math.abs(value) < 1023.95 || unit === 'TiB') {
      return value.toFixed(1) + ' ' + unit;
    }
  }
}

// The facts of a call: pairs of a term and a text. The short form is for the
// tooltip.
function factsOf(i, short) {
  const time = short ? timeText : exactTimeText;
  const kind = spans.kind[i];
  const computes = kind === KIND.operation || kind === KIND.view;
  const facts = [['kind', say(data.kinds[kind])]];
  const text = (index) => data.texts[index];
  if (spans.inputs[i]) facts.push(['inputs', text(spans.inputs[i])]);
  if (spans.in_place[i]) facts.push(['in place', say('yes')]);
  facts.push([computes ? 'time to request' : 'host time', time(spans.host[i])]);
  if (hasWork(i)) {
    facts.push(['in the queue', time(spans.queue[i])]);
    facts.push(['on the device', time(spans.device[i])]);
  } else if (computes) {
    facts.push(['device time', say(data.reasons[spans.device_time[i]])]);
  }
  if (spans.stream[i] >= 0) {
    const stream = data.streams[spans.stream[i]].name;
    facts.push(['stream', say('{0}, operation {1}', stream, spans.number[i])]);
  }
  if (spans.line[i]) facts.push(['source line', text(spans.line[i])]);
  if (short) return facts;
  if (spans.requested_at[i]) {
    facts.push(['requested at', text(spans.requested_at[i])]);
  }
  if (spans.allocated[i]) {
    facts.push(['memory taken', bytesText(spans.allocated[i])]);
  }
  facts.push(['thread', data.threads[spans.thread[i]]]);
  if (spans.parent[i] >= 0) facts.push(['within', nameOf(spans.parent[i])]);
  let around = i;
  while (spans.parent[around] >= 0) around = spans.parent[around];
  facts.push(around === i ?
      ['began', say('{0} into the recording', exactTimeText(hostBegin[i]))] :
      ['began', say('{0} into {1}',
                    exactTimeText(hostBegin[i] - hostBegin[around]),
                    nameOf(around))]);
  return facts;
}

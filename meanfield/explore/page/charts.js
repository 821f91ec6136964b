// Line charts on a canvas: axes, curves, marks. Colours come from the style sheet.

export function colourOf(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

// The context of a canvas whose pixels are those of the screen, cleared; its size in CSS pixels.
export function fresh(canvas) {
  const scale = Math.min(window.devicePixelRatio || 1, 2);
  const width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
  }
  const g = canvas.getContext("2d");
  g.setTransform(scale, 0, 0, scale, 0, 0);
  g.clearRect(0, 0, width, height);
  return { g, width, height };
}

export function short(x) {
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "–";
  const size = Math.abs(x);
  if (size !== 0 && (size < 1e-3 || size >= 1e5)) return x.toExponential(1).replace("e+", "e");
  return String(Number(x.toPrecision(3)));
}

function linearTicks(low, high, count) {
  const rough = (high - low) / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= rough);
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) ticks.push(k * step);
  return ticks;
}

function logTicks(low, high, count) {
  const decades = Math.log10(high / low);
  const factors = decades > count ? [1] : decades > count / 2.5 ? [1, 3] : [1, 2, 5];
  const ticks = [];
  for (let p = Math.floor(Math.log10(low)); p <= Math.log10(high); p++) {
    for (const f of factors) {
      const x = f * 10 ** p;
      if (x >= low * 0.999 && x <= high * 1.001) ticks.push(x);
    }
  }
  return ticks;
}

const MARGIN = { left: 52, right: 12, top: 8, bottom: 36 };

// A chart of given axes: { low, high, log, label } each; `place` maps values to pixels and back.
export class Chart {
  constructor(canvas) {
    this.canvas = canvas;
  }

  begin(x, y) {
    const { g, width, height } = fresh(this.canvas);
    Object.assign(this, { g, width, height, x, y });
    this.box = { left: MARGIN.left, right: width - MARGIN.right, top: MARGIN.top, bottom: height - MARGIN.bottom };
    this.axes();
    return this;
  }

  px(value) {
    return this.box.left + part(value, this.x) * (this.box.right - this.box.left);
  }

  py(value) {
    return this.box.bottom - part(value, this.y) * (this.box.bottom - this.box.top);
  }

  // The values at a place of the canvas, kept within the axes.
  values(px, py) {
    const { left, right, top, bottom } = this.box;
    return [whole(clamp((px - left) / (right - left)), this.x), whole(clamp((bottom - py) / (bottom - top)), this.y)];
  }

  axes() {
    const { g, box } = this;
    g.font = "12px system-ui, sans-serif";
    g.lineWidth = 1;
    g.strokeStyle = colourOf("line");
    g.fillStyle = colourOf("soft");
    g.textBaseline = "top";
    g.textAlign = "center";
    let until = -Infinity;
    for (const tick of this.ticks(this.x, (box.right - box.left) / 70)) {
      const at = this.px(tick), text = short(tick), half = g.measureText(text).width / 2;
      line(g, at, box.top, at, box.bottom);
      const centre = Math.min(Math.max(at, box.left - 10), this.width - half - 1);
      if (centre - half > until + 8) {
        g.fillText(text, centre, box.bottom + 5);
        until = centre + half;
      }
    }
    g.fillText(this.x.label, (box.left + box.right) / 2, box.bottom + 20);
    g.textAlign = "right";
    g.textBaseline = "middle";
    for (const tick of this.ticks(this.y, (box.bottom - box.top) / 38)) {
      const at = this.py(tick);
      line(g, box.left, at, box.right, at);
      g.fillText(short(tick), box.left - 6, at);
    }
    g.save();
    g.translate(11, (box.top + box.bottom) / 2);
    g.rotate(-Math.PI / 2);
    g.textAlign = "center";
    g.fillText(this.y.label, 0, 0);
    g.restore();
  }

  ticks(axis, count) {
    return axis.log ? logTicks(axis.low, axis.high, count) : linearTicks(axis.low, axis.high, count);
  }

  curve(xs, ys, colour, { width = 2, dash = [] } = {}) {
    const { g, box } = this;
    g.save();
    g.beginPath();
    g.rect(box.left, box.top - 2, box.right - box.left, box.bottom - box.top + 4);
    g.clip();
    g.strokeStyle = colour;
    g.lineWidth = width;
    g.setLineDash(dash);
    g.beginPath();
    let down = false;
    for (let i = 0; i < xs.length; i++) {
      if (ys[i] === null || ys[i] === undefined) continue;
      down ? g.lineTo(this.px(xs[i]), this.py(ys[i])) : g.moveTo(this.px(xs[i]), this.py(ys[i]));
      down = true;
    }
    g.stroke();
    g.restore();
  }

  upright(x, colour) {
    const at = this.px(x);
    this.g.strokeStyle = colour;
    this.g.lineWidth = 1.5;
    this.g.setLineDash([2, 3]);
    line(this.g, at, this.box.top, at, this.box.bottom);
    this.g.setLineDash([]);
  }

  // A dot; beyond the axes an arrow at their end that points to it.
  dot(x, y, colour, radius = 6) {
    const { g, box } = this;
    const inside = x >= this.x.low && x <= this.x.high && y >= this.y.low && y <= this.y.high;
    const px = Math.min(Math.max(this.px(x), box.left), box.right);
    const py = Math.min(Math.max(this.py(y), box.top), box.bottom);
    g.fillStyle = colour;
    g.strokeStyle = colourOf("paper");
    g.lineWidth = 2;
    g.beginPath();
    if (inside) {
      g.arc(px, py, radius, 0, 2 * Math.PI);
    } else {
      const turn = x > this.x.high ? 0 : x < this.x.low ? Math.PI : y > this.y.high ? -Math.PI / 2 : Math.PI / 2;
      for (const corner of [0, 2.4, -2.4]) g.lineTo(px + 9 * Math.cos(turn + corner) - 5 * Math.cos(turn), py + 9 * Math.sin(turn + corner) - 5 * Math.sin(turn));
      g.closePath();
    }
    g.stroke();
    g.fill();
  }
}

function line(g, x0, y0, x1, y1) {
  g.beginPath();
  g.moveTo(x0, y0);
  g.lineTo(x1, y1);
  g.stroke();
}

function clamp(s) {
  return Math.min(Math.max(s, 0), 1);
}

function part(value, { low, high, log }) {
  return log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
}

function whole(s, { low, high, log }) {
  return log ? low * (high / low) ** s : low + s * (high - low);
}

// The state: the circle with a density outside and tokens inside; the sphere as a globe or a map;
// the torus as the square of its two angles.

import { colourOf, fresh } from "./charts.js";

const BARS = 72;

export function drawCircle(canvas, density, tokens) {
  const { g, width, height } = fresh(canvas);
  const size = Math.min(width, height) / 2, x0 = width / 2, y0 = height / 2;
  const radius = 0.58 * size, reach = 0.38 * size;
  const place = (angle, r) => [x0 + r * Math.cos(angle), y0 - r * Math.sin(angle)];
  if (tokens) {
    const bars = new Array(BARS).fill(0);
    for (let i = 0; i < tokens.length; i += 2) {
      const turn = Math.atan2(tokens[i + 1], tokens[i]) / (2 * Math.PI);
      bars[Math.floor((turn + 1) * BARS + 0.5) % BARS]++;
    }
    const most = Math.max(...bars, 2 * tokens.length / 2 / BARS);
    g.fillStyle = colourOf("tokens");
    g.globalAlpha = 0.45;
    for (let k = 0; k < BARS; k++) {
      const from = ((k - 0.45) * 2 * Math.PI) / BARS, to = ((k + 0.45) * 2 * Math.PI) / BARS;
      const inner = radius * (0.96 - (0.62 * bars[k]) / most);
      g.beginPath();
      g.arc(x0, y0, radius * 0.96, -from, -to, true);
      g.arc(x0, y0, inner, -to, -from, false);
      g.fill();
    }
    g.globalAlpha = 1;
  }
  if (density) {
    const high = Math.max(density.high, 1.5);
    const outline = () => {
      g.beginPath();
      for (let k = 0; k <= density.values.length; k++) {
        const i = k % density.values.length;
        const r = radius + (reach * Math.max(density.values[i], 0)) / high;
        g.lineTo(...place((2 * Math.PI * i) / density.values.length, r));
      }
      g.closePath();
    };
    outline();
    g.arc(x0, y0, radius, 0, 2 * Math.PI, true);
    g.fillStyle = colourOf("density");
    g.globalAlpha = 0.3;
    g.fill("evenodd");
    g.globalAlpha = 1;
    outline();
    g.strokeStyle = colourOf("density");
    g.lineWidth = 2;
    g.stroke();
  }
  g.strokeStyle = colourOf("soft");
  g.lineWidth = 1;
  g.beginPath();
  g.arc(x0, y0, radius, 0, 2 * Math.PI);
  g.stroke();
  if (tokens) {
    g.fillStyle = colourOf("tokens");
    g.globalAlpha = 0.7;
    for (let i = 0; i < tokens.length; i += 2) {
      g.beginPath();
      g.arc(x0 + radius * tokens[i], y0 - radius * tokens[i + 1], 2.6, 0, 2 * Math.PI);
      g.fill();
    }
    g.globalAlpha = 1;
  }
}

// Both angles of the torus in (-π, π], the first to the right, the second upwards.
export function drawSquare(canvas, density, tokens, colours) {
  const { g, width, height } = fresh(canvas);
  const side = 0.97 * Math.min(width, height), left = (width - side) / 2, top = (height - side) / 2;
  if (density) {
    const n = Math.round(Math.sqrt(density.values.length)), image = new ImageData(n, n);
    for (let j = 0; j < n; j++) {
      for (let i = 0; i < n; i++) {
        const at = 4 * ((n - 1 - j) * n + i), half = n >> 1;
        const colour = 3 * density.values[((i + half) % n) * n + ((j + half) % n)];
        for (let part = 0; part < 3; part++) image.data[at + part] = colours[colour + part];
        image.data[at + 3] = 255;
      }
    }
    const page = new OffscreenCanvas(n, n);
    page.getContext("2d").putImageData(image, 0, 0);
    g.drawImage(page, left, top, side, side);
  }
  g.strokeStyle = colourOf("soft");
  g.lineWidth = 1.5;
  g.strokeRect(left, top, side, side);
  if (tokens) {
    const across = (x, y) => Math.atan2(y, x) / (2 * Math.PI) + 0.5;
    for (let i = 0; i < tokens.length; i += 4) {
      dot(g, left + side * across(tokens[i], tokens[i + 1]), top + side * (1 - across(tokens[i + 2], tokens[i + 3])));
    }
  }
}

// A token above a map.
function dot(g, x, y) {
  g.fillStyle = "#e69f00";
  g.strokeStyle = "#1b1f23";
  g.lineWidth = 1;
  g.beginPath();
  g.arc(x, y, 3, 0, 2 * Math.PI);
  g.fill();
  g.stroke();
}

// Which values a pixel shows, for one projection and size; computed anew when it is turned.
export class SphereView {
  constructor(latitudes, longitudes, colours) {
    Object.assign(this, { latitudes, longitudes, colours });
    this.turn = 0.35;
    this.tilt = 0.35;
    this.projection = "globe";
    this.table = null;
  }

  rotate(turn, tilt) {
    this.turn += turn;
    this.tilt = Math.min(Math.max(this.tilt + tilt, -1.5), 1.5);
    this.table = null;
  }

  // From a direction to the page, in units of the radius; depth < 0 is behind.
  place(x, y, z) {
    if (this.projection === "map") {
      const phi = Math.atan2(y, x);
      let t = Math.asin(Math.min(Math.max(z, -1), 1));
      for (let k = 0; k < 8; k++) t -= (2 * t + Math.sin(2 * t) - Math.PI * z) / (2 + 2 * Math.cos(2 * t) + 1e-9);
      return [((2 * phi) / Math.PI) * Math.cos(t), Math.sin(t), 1];
    }
    const [c, s] = [Math.cos(this.turn), Math.sin(this.turn)];
    const [a, b] = [x * c + y * s, -x * s + y * c];
    const [p, q] = [Math.cos(this.tilt), Math.sin(this.tilt)];
    return [b, z * p - a * q, a * p + z * q];
  }

  // The direction that a place of the page shows, or null.
  direction(u, v) {
    if (this.projection === "map") {
      if ((u / 2) ** 2 + v ** 2 > 1) return null;
      const t = Math.asin(v), phi = (Math.PI * u) / 2 / Math.max(Math.cos(t), 1e-9);
      const z = (2 * t + Math.sin(2 * t)) / Math.PI, r = Math.sqrt(Math.max(1 - z * z, 0));
      return [r * Math.cos(phi), r * Math.sin(phi), z];
    }
    const d = 1 - u * u - v * v;
    if (d < 0) return null;
    const w = Math.sqrt(d), [p, q] = [Math.cos(this.tilt), Math.sin(this.tilt)];
    const [a, z] = [w * p - v * q, w * q + v * p];
    const [c, s] = [Math.cos(this.turn), Math.sin(this.turn)];
    return [a * c - u * s, a * s + u * c, z];
  }

  prepare(width, height) {
    const wide = this.projection === "map" ? 2 : 1;
    this.radius = Math.min(width / (2 * wide), height / 2) * 0.97;
    const w = Math.round(2 * wide * this.radius), h = Math.round(2 * this.radius);
    const n = this.latitudes.length, m = this.longitudes;
    const rows = new Int32Array(w * h).fill(-1), parts = new Float32Array(2 * w * h), columns = new Int32Array(w * h);
    for (let j = 0; j < h; j++) {
      for (let i = 0; i < w; i++) {
        const x = this.direction((i + 0.5 - w / 2) / this.radius, (h / 2 - j - 0.5) / this.radius);
        if (!x) continue;
        let low = 0, high = n - 1;
        while (high - low > 1) {
          const middle = (low + high) >> 1;
          this.latitudes[middle] >= x[2] ? (low = middle) : (high = middle);
        }
        const k = j * w + i, span = this.latitudes[low] - this.latitudes[high];
        const turn = ((Math.atan2(x[1], x[0]) / (2 * Math.PI) + 1) % 1) * m;
        rows[k] = low;
        columns[k] = Math.floor(turn) % m;
        parts[2 * k] = Math.min(Math.max((this.latitudes[low] - x[2]) / span, 0), 1);
        parts[2 * k + 1] = turn - Math.floor(turn);
      }
    }
    const page = new OffscreenCanvas(w, h);
    this.table = { width, height, w, h, rows, columns, parts, page, image: new ImageData(w, h) };
  }

  draw(canvas, density, tokens) {
    const { g, width, height } = fresh(canvas);
    const kept = this.table;
    if (!kept || kept.width !== width || kept.height !== height) this.prepare(width, height);
    const x0 = width / 2, y0 = height / 2;
    if (density) {
      this.paint(density.values);
      const { page, w, h } = this.table;
      g.drawImage(page, x0 - w / 2, y0 - h / 2, w, h);
    }
    g.strokeStyle = colourOf("soft");
    g.lineWidth = 1.5;
    g.beginPath();
    g.ellipse(x0, y0, this.radius * (this.projection === "map" ? 2 : 1), this.radius, 0, 0, 2 * Math.PI);
    g.stroke();
    if (!tokens) return;
    for (let i = 0; i < tokens.length; i += 3) {
      const [u, v, depth] = this.place(tokens[i], tokens[i + 1], tokens[i + 2]);
      if (depth >= 0) dot(g, x0 + this.radius * u, y0 - this.radius * v);
    }
  }

  paint(values) {
    const { rows, columns, parts, image, page } = this.table, m = this.longitudes, out = image.data;
    for (let k = 0; k < rows.length; k++) {
      if (rows[k] < 0) continue;
      const at = rows[k] * m, c = columns[k], d = c + 1 === m ? 0 : c + 1, p = parts[2 * k], q = parts[2 * k + 1];
      const above = values[at + c] * (1 - q) + values[at + d] * q;
      const below = values[at + m + c] * (1 - q) + values[at + m + d] * q;
      const colour = 3 * Math.round(above * (1 - p) + below * p);
      out[4 * k] = this.colours[colour];
      out[4 * k + 1] = this.colours[colour + 1];
      out[4 * k + 2] = this.colours[colour + 2];
      out[4 * k + 3] = 255;
    }
    page.getContext("2d").putImageData(image, 0, 0);
  }
}

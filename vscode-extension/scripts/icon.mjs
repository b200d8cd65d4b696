// Draws the extension's icon, 128 by 128: two brackets with a text between them. Shapes are distance functions, sampled
// finely enough for smooth edges, and written as a PNG without a library.
//
//     node scripts/icon.mjs media/icon.png
import { writeFileSync } from "node:fs";
import { deflateSync } from "node:zlib";

const SIZE = 128;
const SAMPLES = 4; // in each direction of a pixel

/** The distance of a point to a box with rounded corners; negative inside. */
function box(x, y, left, top, right, bottom, radius) {
  const dx = Math.abs(x - (left + right) / 2) - (right - left) / 2 + radius;
  const dy = Math.abs(y - (top + bottom) / 2) - (bottom - top) / 2 + radius;
  return Math.hypot(Math.max(dx, 0), Math.max(dy, 0)) + Math.min(Math.max(dx, dy), 0) - radius;
}

/** A square bracket that opens to the right, its back at `left`. */
function bracket(x, y, left) {
  return Math.min(
    box(x, y, left, 28, left + 9, 100, 3),
    box(x, y, left, 28, left + 25, 37, 3),
    box(x, y, left, 91, left + 25, 100, 3),
  );
}

const SHAPES = [
  {
    colour: (_x, y) => [mix(43, 23, y / SIZE), mix(54, 29, y / SIZE), mix(92, 52, y / SIZE)],
    inside: (x, y) => box(x, y, 4, 4, 124, 124, 26),
  },
  { colour: () => [236, 240, 250], inside: (x, y) => bracket(x, y, 20) },
  { colour: () => [236, 240, 250], inside: (x, y) => bracket(SIZE - x, y, 20) },
  // Three pieces of text, with the cursor after the last.
  { colour: () => [86, 214, 172], inside: (x, y) => box(x, y, 40, 48, 88, 57, 4.5) },
  { colour: () => [86, 214, 172], inside: (x, y) => box(x, y, 40, 66, 68, 75, 4.5) },
  { colour: () => [255, 203, 92], inside: (x, y) => box(x, y, 75, 62, 80, 80, 2) },
];

function mix(from, to, share) {
  return from + (to - from) * share;
}

/** Red, green, blue and opacity at a point; later shapes lie above earlier ones. */
function colourAt(x, y) {
  const shape = SHAPES.findLast(({ inside }) => inside(x, y) <= 0);
  return shape === undefined ? [0, 0, 0, 0] : [...shape.colour(x, y), 255];
}

function pixel(column, row) {
  const sum = [0, 0, 0, 0];
  for (let sample = 0; sample < SAMPLES * SAMPLES; sample++) {
    const x = column + ((sample % SAMPLES) + 0.5) / SAMPLES;
    const y = row + (Math.floor(sample / SAMPLES) + 0.5) / SAMPLES;
    const [red, green, blue, opacity] = colourAt(x, y);
    sum[0] += red * opacity;
    sum[1] += green * opacity;
    sum[2] += blue * opacity;
    sum[3] += opacity;
  }
  const opacity = sum[3];
  return opacity === 0
    ? [0, 0, 0, 0]
    : [sum[0] / opacity, sum[1] / opacity, sum[2] / opacity, opacity / (SAMPLES * SAMPLES)];
}

function chunk(type, data) {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const framed = Buffer.alloc(body.length + 8);
  framed.writeUInt32BE(data.length, 0);
  body.copy(framed, 4);
  framed.writeUInt32BE(crc(body), body.length + 4);
  return framed;
}

function crc(bytes) {
  let value = 0xffffffff;
  for (const byte of bytes) {
    value ^= byte;
    for (let bit = 0; bit < 8; bit++) {
      value = (value >>> 1) ^ (value & 1 ? 0xedb88320 : 0);
    }
  }
  return (value ^ 0xffffffff) >>> 0;
}

const rows = Array.from({ length: SIZE }, (_, row) =>
  Buffer.from([0, ...Array.from({ length: SIZE }, (_, column) => pixel(column, row).map(Math.round)).flat()]),
);
const header = Buffer.alloc(13);
header.writeUInt32BE(SIZE, 0);
header.writeUInt32BE(SIZE, 4);
header.set([8, 6, 0, 0, 0], 8); // 8 bits, red green blue opacity
const [, , target] = process.argv;
if (target === undefined) {
  throw new Error("usage: node scripts/icon.mjs FILE");
}
writeFileSync(
  target,
  Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    chunk("IHDR", header),
    chunk("IDAT", deflateSync(Buffer.concat(rows), { level: 9 })),
    chunk("IEND", Buffer.alloc(0)),
  ]),
);

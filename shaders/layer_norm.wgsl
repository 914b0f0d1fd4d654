// Layer norm of rows and its gradient, one thread a row.

@group(0) @binding(1) var<storage, read> x: array<f32>;             // [rows, row]
@group(0) @binding(2) var<storage, read> gain: array<f32>;          // [row]
@group(0) @binding(3) var<storage, read> bias: array<f32>;          // [row]   normalize
@group(0) @binding(4) var<storage, read_write> y: array<f32>;       // [rows, row] normalize

// Mean and 1 / deviation of the row that starts here.
fn moments(start: u32) -> vec2f {
  var mean = 0.0;
  for (var c = 0u; c < p.width; c++) { mean += x[start + c]; }
  mean /= f32(p.width);
  var square = 0.0;
  for (var c = 0u; c < p.width; c++) {
    let off = x[start + c] - mean;
    square += off * off;
  }
  return vec2f(mean, 1.0 / sqrt(square / f32(p.width) + p.eps));
}

@compute @workgroup_size(WORKGROUP)
fn normalize(@builtin(workgroup_id) group: vec3u,
             @builtin(local_invocation_index) lane: u32) {
  let i = group_index(group) * WORKGROUP + lane;
  if (i >= p.rows) { return; }
  let start = i * p.row;
  let m = moments(start);
  for (var c = 0u; c < p.width; c++) { y[start + c] = (x[start + c] - m.x) * m.y * gain[c] + bias[c]; }
  // What pads a row stays 0.
  for (var c = p.width; c < p.row; c++) { y[start + c] = 0.0; }
}

@group(0) @binding(3) var<storage, read_write> dy: array<f32>;      // [rows, row] backward
@group(0) @binding(4) var<storage, read_write> dx: array<f32>;      // [rows, row] backward

@compute @workgroup_size(WORKGROUP)
fn backward(@builtin(workgroup_id) group: vec3u,
            @builtin(local_invocation_index) lane: u32) {
  let i = group_index(group) * WORKGROUP + lane;
  if (i >= p.rows) { return; }
  let start = i * p.row;
  let m = moments(start);
  var level = 0.0;
  var slope = 0.0;
  for (var c = 0u; c < p.width; c++) {
    let g = dy[start + c] * gain[c];
    level += g;
    slope += g * ((x[start + c] - m.x) * m.y);
  }
  level /= f32(p.width);
  slope /= f32(p.width);
  for (var c = 0u; c < p.width; c++) {
    let at = start + c;
    let unit = (x[at] - m.x) * m.y;
    let g = dy[at];
    dx[at] += m.y * (g * gain[c] - level - unit * slope);
    // The sum of its columns is the gradient of the gain.
    dy[at] = g * unit;
  }
}

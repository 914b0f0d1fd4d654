// c = [c +] sign (a b [+ bias]). A workgroup of 8 x 8 threads makes 32 x 32 cells, a thread 4 x 4, from
// tiles of a and b in workgroup memory. Strides say whether a matrix is read as it lies or transposed.

@group(0) @binding(1) var<storage, read> a: array<f32>;             // [rows, inner]    by strides
@group(0) @binding(2) var<storage, read> b: array<f32>;             // [inner, columns] by strides
@group(0) @binding(3) var<storage, read> bias: array<f32>;          // [columns]
@group(0) @binding(4) var<storage, read_write> c: array<f32>;       // [rows, c_row]

const LANES = PRODUCT_TILE / 4u;

var<workgroup> a_tile: array<vec4f, PRODUCT_DEPTH * LANES>;         // [inner, 4 rows]
var<workgroup> b_tile: array<vec4f, PRODUCT_DEPTH * LANES>;         // [inner, 4 columns]

fn a_at(i: u32, k: u32) -> f32 {
  if (i >= p.rows || k >= p.inner_end) { return 0.0; }
  return a[i * p.a_row + k * p.a_column];
}

fn b_at(k: u32, j: u32) -> f32 {
  if (j >= p.columns || k >= p.inner_end) { return 0.0; }
  return b[k * p.b_row + j * p.b_column];
}

@compute @workgroup_size(WORKGROUP)
fn multiply(@builtin(workgroup_id) group: vec3u,
            @builtin(local_invocation_index) lane: u32) {
  let g = group_index(group);
  let tiles = (p.c_row + PRODUCT_TILE - 1u) / PRODUCT_TILE;
  let tile_row = (g / tiles) * PRODUCT_TILE;
  let tile_column = (g % tiles) * PRODUCT_TILE;
  var sums: array<vec4f, 4>;
  for (var start = p.inner_start; start < p.inner_end; start += PRODUCT_DEPTH) {
    workgroupBarrier();
    for (var at = lane; at < PRODUCT_DEPTH * LANES; at += WORKGROUP) {
      // Neighbouring threads read neighbouring words of rows as they mostly lie.
      let k = start + at % PRODUCT_DEPTH;
      let i = tile_row + at / PRODUCT_DEPTH * 4u;
      a_tile[at % PRODUCT_DEPTH * LANES + at / PRODUCT_DEPTH] =
        vec4f(a_at(i, k), a_at(i + 1u, k), a_at(i + 2u, k), a_at(i + 3u, k));
      let l = start + at / LANES;
      let j = tile_column + at % LANES * 4u;
      b_tile[at] = vec4f(b_at(l, j), b_at(l, j + 1u), b_at(l, j + 2u), b_at(l, j + 3u));
    }
    workgroupBarrier();
    for (var k = 0u; k < PRODUCT_DEPTH; k++) {
      let x = a_tile[k * LANES + lane / LANES];
      let y = b_tile[k * LANES + lane % LANES];
      sums[0] += x.x * y;
      sums[1] += x.y * y;
      sums[2] += x.z * y;
      sums[3] += x.w * y;
    }
  }
  let row0 = tile_row + lane / LANES * 4u;
  let column0 = tile_column + lane % LANES * 4u;
  for (var r = 0u; r < 4u && row0 + r < p.rows; r++) {
    for (var t = 0u; t < 4u && column0 + t < p.c_row; t++) {
      let j = column0 + t;
      let at = (row0 + r) * p.c_row + j;
      var value = 0.0;
      // What pads a row stays 0.
      if (j < p.columns) {
        value = sums[r][t];
        if (p.biased != 0u) { value += bias[j]; }
        value *= p.sign;
        if (p.accumulate != 0u) { value += c[at]; }
      }
      c[at] = value;
    }
  }
}

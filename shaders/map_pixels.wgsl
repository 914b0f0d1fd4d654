// Weights of a block of rows summed into pixels, one thread a pixel.

@group(0) @binding(1) var<storage, read> weights: array<f32>;             // [rows, n_kv]
@group(0) @binding(2) var<storage, read_write> pixels: array<f32>;        // [row_start + rows, width]

@compute @workgroup_size(WORKGROUP)
fn pixels_of_rows(@builtin(workgroup_id) group: vec3u,
                  @builtin(local_invocation_index) lane: u32) {
  let cell = group_index(group) * WORKGROUP + lane;
  let row = cell / p.width;
  let x = cell % p.width;
  if (row >= p.rows) { return; }
  // The columns whose floor(offset * width / col_count) is x.
  let first = (x * p.col_count + p.width - 1u) / p.width;
  let end = ((x + 1u) * p.col_count + p.width - 1u) / p.width;
  var sum = 0.0;
  for (var col = first; col < end; col++) { sum += weights[row * p.n_kv + p.col_start + col]; }
  pixels[(p.row_start + row) * p.width + x] = sum;
}

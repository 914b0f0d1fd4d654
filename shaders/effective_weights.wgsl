// P-bar E, or its absolute value, on a block of rows and a slice of columns of E, one thread an entry.

@group(0) @binding(1) var<storage, read> projected: array<f32>;           // [rows, k]       P-bar
@group(0) @binding(2) var<storage, read> e_transposed: array<f32>;        // [columns, 4 k4]
@group(0) @binding(3) var<storage, read_write> weights: array<f32>;       // [rows, n]

@compute @workgroup_size(WORKGROUP)
fn effective_weights(@builtin(workgroup_id) group: vec3u,
                     @builtin(local_invocation_index) lane: u32) {
  let g = group_index(group);
  let row = g / p.tiles;
  let column = (g % p.tiles) * WORKGROUP + lane;
  if (column >= p.columns) { return; }
  var sum = 0.0;
  for (var i = 0u; i < p.k; i++) { sum += projected[row * p.k + i] * e_transposed[column * 4u * p.k4 + i]; }
  weights[row * p.n + p.column_start + column] = select(abs(sum), sum, p.is_signed != 0u);
}

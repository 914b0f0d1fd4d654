// Softmax over the strongest keys alone, one thread a query.

@group(0) @binding(1) var<storage, read> top_index: array<u32>;           // [row_start + rows, TOP]
@group(0) @binding(2) var<storage, read> top_score: array<f32>;           // [row_start + rows, TOP]
@group(0) @binding(3) var<storage, read> v: array<vec4f>;                 // [n_kv, DV4]
@group(0) @binding(4) var<storage, read_write> out: array<vec4f>;         // [row_start + rows, DV4]

@compute @workgroup_size(WORKGROUP)
fn attend(@builtin(workgroup_id) group: vec3u,
          @builtin(local_invocation_index) lane: u32) {
  let r = group_index(group) * WORKGROUP + lane;
  if (r >= p.rows) { return; }
  let row = p.row_start + r;
  var sum: array<vec4f, DV4>;
  var total = 0.0;
  let top = top_score[row * TOP];     // the list is sorted
  for (var t = 0u; t < p.count; t++) {
    let j = top_index[row * TOP + t];
    if (j == NO_KEY) { break; }
    let weight = exp(top_score[row * TOP + t] - top);
    total += weight;
    for (var c = 0u; c < DV4; c++) { sum[c] += weight * v[j * DV4 + c]; }
  }
  let factor = select(0.0, 1.0 / total, total > 0.0);
  for (var c = 0u; c < DV4; c++) { out[row * DV4 + c] = sum[c] * factor; }
}

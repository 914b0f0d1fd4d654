// softmax(q k^T) v with an online softmax over tiles of a slice of keys, one thread a query. A slice
// goes on from the output and log-sum-exp of those before it.

@group(0) @binding(1) var<storage, read> q: array<vec4f>;               // [n_q, D4]
@group(0) @binding(2) var<storage, read> k: array<vec4f>;               // [n_kv, D4]
@group(0) @binding(3) var<storage, read> v: array<vec4f>;               // [n_kv, DV4]
@group(0) @binding(4) var<storage, read> key_scale: array<f32>;         // [n_kv]
@group(0) @binding(5) var<storage, read_write> out: array<vec4f>;       // [n_q, DV4]
@group(0) @binding(6) var<storage, read_write> lse: array<f32>;         // [n_q]

@compute @workgroup_size(WORKGROUP)
fn attend(@builtin(workgroup_id) group: vec3u,
          @builtin(local_invocation_index) lane: u32) {
  let i = group_index(group) * WORKGROUP + lane;
  if (i >= p.n_q) { return; }
  var query: array<vec4f, D4>;
  for (var c = 0u; c < D4; c++) { query[c] = q[i * D4 + c] * p.scale; }

  let end = select(p.key_end, min(p.key_end, i + 1u), (p.flags & CAUSAL) != 0u);
  var top = EMPTY;
  var total = 0.0;
  var sum: array<vec4f, DV4>;
  if (p.key_start > 0u && lse[i] != EMPTY) {
    top = lse[i];
    total = 1.0;
    for (var c = 0u; c < DV4; c++) { sum[c] = out[i * DV4 + c]; }
  }
  for (var start = p.key_start; start < end; start += KEY_TILE) {
    var scores: array<f32, KEY_TILE>;
    var tile_top = top;
    for (var t = 0u; t < KEY_TILE; t++) {
      let j = start + t;
      var score = EMPTY;
      if (j < end && (j != i || (p.flags & SELF_EXCLUDE) == 0u)) {
        if (j == i && (p.flags & SELF_VALUE) != 0u) {
          score = p.self_value;
        } else {
          score = 0.0;
          for (var c = 0u; c < D4; c++) { score += dot(query[c], k[j * D4 + c]); }
          score *= key_scale[j];
        }
      }
      scores[t] = score;
      tile_top = max(tile_top, score);
    }
    if (tile_top > top) {
      let shrink = select(exp(top - tile_top), 0.0, total == 0.0);
      total *= shrink;
      for (var c = 0u; c < DV4; c++) { sum[c] *= shrink; }
      top = tile_top;
    }
    for (var t = 0u; t < KEY_TILE; t++) {
      if (scores[t] == EMPTY) { continue; }
      let weight = exp(scores[t] - top);
      total += weight;
      for (var c = 0u; c < DV4; c++) { sum[c] += weight * v[(start + t) * DV4 + c]; }
    }
  }
  let seen = total > 0.0;
  let factor = select(0.0, 1.0 / total, seen);
  for (var c = 0u; c < DV4; c++) { out[i * DV4 + c] = sum[c] * factor; }
  lse[i] = select(EMPTY, top + log(total), seen);
}

// One round of LSH attention, one thread an entry of the sorted order.

@group(0) @binding(1) var<storage, read> q: array<vec4f>;                 // [n, D4]
@group(0) @binding(2) var<storage, read> v: array<vec4f>;                 // [n, DV4]
@group(0) @binding(3) var<storage, read> key_scale: array<f32>;           // [n]
@group(0) @binding(4) var<storage, read> order: array<u32>;               // [rounds, n]
@group(0) @binding(5) var<storage, read> chunk_of: array<u32>;            // [rounds, n]
@group(0) @binding(6) var<storage, read> buckets: array<u32>;             // [rounds, n]
@group(0) @binding(7) var<storage, read_write> round_out: array<vec4f>;   // [n, DV4]
@group(0) @binding(8) var<storage, read_write> round_lse: array<f32>;     // [n]

@compute @workgroup_size(WORKGROUP)
fn attend(@builtin(workgroup_id) group: vec3u,
          @builtin(local_invocation_index) lane: u32) {
  let n = p.lsh.n;
  let entry = group_index(group) * WORKGROUP + lane;
  if (entry >= n) { return; }
  let i = order[p.round * n + entry];
  let chunk = entry / p.lsh.chunk_len;
  var query: array<vec4f, D4>;
  for (var c = 0u; c < D4; c++) { query[c] = q[i * D4 + c] * p.scale; }

  // Online softmax: `top` is the largest score so far, `total` and `sum` are relative to it.
  var top = EMPTY;
  var total = 0.0;
  var sum: array<vec4f, DV4>;
  // The keys of earlier passes go on as one key: their output, at their log-sum-exp.
  if (p.lsh.slot_start > 0u && round_lse[i] != EMPTY) {
    top = round_lse[i];
    total = 1.0;
    for (var c = 0u; c < DV4; c++) { sum[c] = round_out[i * DV4 + c]; }
  }
  for (var step = 0u; step <= p.lsh.before + p.lsh.after; step++) {
    let place = seen_chunk(p.round, chunk, step);
    if (place.y == NO_KEY) { continue; }
    let part = bucket_entries(place, step, p.round, i);
    for (var e = part.x; e < part.y; e++) {
      let j = order[place.x * n + e];
      if (!allowed(i, j)) { continue; }
      var score = p.self_value;
      if (i != j || (p.lsh.flags & SELF_VALUE) == 0u) {
        score = 0.0;
        for (var c = 0u; c < D4; c++) { score += dot(query[c], q[j * D4 + c]); }
        score *= key_scale[j];
      }
      score -= correction(i, j);
      // Without a branch: shrinking goes along with the sum, and most of the time is by 1.
      let best = max(top, score);
      let shrink = select(exp(top - best), 0.0, total == 0.0);
      let weight = exp(score - best);
      top = best;
      total = total * shrink + weight;
      for (var c = 0u; c < DV4; c++) { sum[c] = sum[c] * shrink + weight * v[j * DV4 + c]; }
    }
  }
  let seen = total > 0.0;
  let factor = select(0.0, 1.0 / total, seen);
  for (var c = 0u; c < DV4; c++) { round_out[i * DV4 + c] = sum[c] * factor; }
  round_lse[i] = select(EMPTY, top + log(total), seen);
}

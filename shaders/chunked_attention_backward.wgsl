// Gradients of LSH attention, the part of one round, one thread an entry of its sorted order. With
// w_ij = exp(s_ij - lse_i), lse_i over all rounds, and ds_ij = w_ij (dout_i . v_j - dout_i . out_i):
//   dq_i = sum_j ds_ij scale u(q_j),   du_j = sum_i ds_ij scale q_i,   dv_j = sum_i w_ij dout_i.
// A query walks the chunks that it sees, a key those that see its own.

@group(0) @binding(1) var<storage, read> q: array<vec4f>;               // [n, D4]
@group(0) @binding(2) var<storage, read> v: array<vec4f>;               // [n, DV4]         queries, keys
@group(0) @binding(3) var<storage, read> order: array<u32>;             // [rounds, n]
@group(0) @binding(4) var<storage, read> chunk_of: array<u32>;          // [rounds, n]
@group(0) @binding(5) var<storage, read> buckets: array<u32>;           // [rounds, n]
@group(0) @binding(6) var<storage, read> dout: array<vec4f>;            // [n, DV4]
@group(0) @binding(7) var<storage, read> terms: array<f32>;             // [3, n]           queries, keys
@group(0) @binding(8) var<storage, read_write> gradient: array<vec4f>;  // [n, D4]          queries, keys

fn has(flag: u32) -> bool { return (p.lsh.flags & flag) != 0u; }

@compute @workgroup_size(WORKGROUP)
fn queries(@builtin(workgroup_id) group: vec3u,
           @builtin(local_invocation_index) lane: u32) {
  let n = p.lsh.n;
  let entry = group_index(group) * WORKGROUP + lane;
  if (entry >= n) { return; }
  let i = order[p.round * n + entry];
  let lse_i = terms[i];
  let delta = terms[n + i];
  var query: array<vec4f, D4>;
  var down: array<vec4f, DV4>;
  var sum: array<vec4f, D4>;
  for (var c = 0u; c < D4; c++) { query[c] = q[i * D4 + c] * p.scale; }
  for (var c = 0u; c < DV4; c++) { down[c] = dout[i * DV4 + c]; }
  for (var step = 0u; step <= p.lsh.before + p.lsh.after; step++) {
    let place = seen_chunk(p.round, entry / p.lsh.chunk_len, step);
    if (place.y == NO_KEY) { continue; }
    let part = bucket_entries(place, step, p.round, i);
    for (var e = part.x; e < part.y; e++) {
      let j = order[place.x * n + e];
      // A score that is a constant has no gradient.
      if (!allowed(i, j) || (i == j && has(SELF_VALUE))) { continue; }
      let scale = terms[2u * n + j];
      var score = 0.0;
      for (var c = 0u; c < D4; c++) { score += dot(query[c], q[j * D4 + c]); }
      var slope = -delta;
      for (var c = 0u; c < DV4; c++) { slope += dot(down[c], v[j * DV4 + c]); }
      let factor = exp(score * scale - lse_i - correction(i, j)) * slope * scale;
      for (var c = 0u; c < D4; c++) { sum[c] += factor * q[j * D4 + c]; }
    }
  }
  for (var c = 0u; c < D4; c++) {
    var total = sum[c] * p.scale;
    if (p.add != 0u) { total += gradient[i * D4 + c]; }
    gradient[i * D4 + c] = total;
  }
}

@compute @workgroup_size(WORKGROUP)
fn keys(@builtin(workgroup_id) group: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  let n = p.lsh.n;
  let entry = group_index(group) * WORKGROUP + lane;
  if (entry >= n) { return; }
  let j = order[p.round * n + entry];
  let scale = terms[2u * n + j];
  var key: array<vec4f, D4>;
  var value: array<vec4f, DV4>;
  var sum: array<vec4f, D4>;
  for (var c = 0u; c < D4; c++) { key[c] = q[j * D4 + c] * p.scale; }
  for (var c = 0u; c < DV4; c++) { value[c] = v[j * DV4 + c]; }
  for (var step = 0u; step <= p.lsh.before + p.lsh.after; step++) {
    let place = seeing_chunk(p.round, entry / p.lsh.chunk_len, step);
    if (place.y == NO_KEY) { continue; }
    let part = bucket_entries(place, step, p.round, j);
    for (var e = part.x; e < part.y; e++) {
      let i = order[place.x * n + e];
      if (!allowed(i, j) || (i == j && has(SELF_VALUE))) { continue; }
      var score = 0.0;
      for (var c = 0u; c < D4; c++) { score += dot(key[c], q[i * D4 + c]); }
      var slope = -terms[n + i];
      for (var c = 0u; c < DV4; c++) { slope += dot(value[c], dout[i * DV4 + c]); }
      let factor = exp(score * scale - terms[i] - correction(i, j)) * slope;
      for (var c = 0u; c < D4; c++) { sum[c] += factor * q[i * D4 + c]; }
    }
  }
  for (var c = 0u; c < D4; c++) {
    var total = sum[c] * p.scale;
    if (p.add != 0u) { total += gradient[j * D4 + c]; }
    gradient[j * D4 + c] = total;
  }
}

@group(0) @binding(2) var<storage, read> key_scale: array<f32>;         // [n]              values
@group(0) @binding(7) var<storage, read> lse: array<f32>;               // [n]              values
@group(0) @binding(8) var<storage, read_write> dv: array<vec4f>;        // [n, DV4]         values

@compute @workgroup_size(WORKGROUP)
fn values(@builtin(workgroup_id) group: vec3u,
          @builtin(local_invocation_index) lane: u32) {
  let n = p.lsh.n;
  let entry = group_index(group) * WORKGROUP + lane;
  if (entry >= n) { return; }
  let j = order[p.round * n + entry];
  let scale = key_scale[j];
  var key: array<vec4f, D4>;
  var sum: array<vec4f, DV4>;
  for (var c = 0u; c < D4; c++) { key[c] = q[j * D4 + c] * p.scale; }
  for (var step = 0u; step <= p.lsh.before + p.lsh.after; step++) {
    let place = seeing_chunk(p.round, entry / p.lsh.chunk_len, step);
    if (place.y == NO_KEY) { continue; }
    let part = bucket_entries(place, step, p.round, j);
    for (var e = part.x; e < part.y; e++) {
      let i = order[place.x * n + e];
      if (!allowed(i, j)) { continue; }
      var score = p.self_value;
      if (i != j || !has(SELF_VALUE)) {
        score = 0.0;
        for (var c = 0u; c < D4; c++) { score += dot(key[c], q[i * D4 + c]); }
        score *= scale;
      }
      // First what both have of a self value such as -1e5, where float32 is coarse.
      let weight = exp(score - lse[i] - correction(i, j));
      for (var c = 0u; c < DV4; c++) { sum[c] += weight * dout[i * DV4 + c]; }
    }
  }
  for (var c = 0u; c < DV4; c++) {
    if (p.add != 0u) { sum[c] += dv[j * DV4 + c]; }
    dv[j * DV4 + c] = sum[c];
  }
}

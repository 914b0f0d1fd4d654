// Gradients of exact attention from the log-sum-exp of its rows, without any matrix. With
// w_ij = exp(s_ij - lse_i) and ds_ij = w_ij (dout_i . v_j - dout_i . out_i):
//   dq_i = sum_j ds_ij scale u(k_j),   du_j = sum_i ds_ij scale q_i,   dv_j = sum_i w_ij dout_i.
// One thread a row of the result; [start, end) is a slice of the keys, or of the queries.

@group(0) @binding(1) var<storage, read> q: array<vec4f>;               // [n_q, D4]
@group(0) @binding(2) var<storage, read> k: array<vec4f>;               // [n_kv, D4]
@group(0) @binding(3) var<storage, read> v: array<vec4f>;               // [n_kv, DV4]      queries, keys
@group(0) @binding(4) var<storage, read> terms: array<f32>;             // [3, max(n_q, n_kv)] queries, keys
@group(0) @binding(5) var<storage, read> dout: array<vec4f>;            // [n_q, DV4]
@group(0) @binding(6) var<storage, read_write> gradient: array<vec4f>;  // [rows, D4]       queries, keys

fn has(flag: u32) -> bool { return (p.flags & flag) != 0u; }

// A score that is a constant has no gradient, nor has one that is never computed.
fn skips_self() -> bool { return has(SELF_VALUE | SELF_EXCLUDE); }

@compute @workgroup_size(WORKGROUP)
fn queries(@builtin(workgroup_id) group: vec3u,
           @builtin(local_invocation_index) lane: u32) {
  let i = group_index(group) * WORKGROUP + lane;
  if (i >= p.n_q) { return; }
  let rows = max(p.n_q, p.n_kv);
  let lse_i = terms[i];
  let delta = terms[rows + i];
  var query: array<vec4f, D4>;
  var down: array<vec4f, DV4>;
  var sum: array<vec4f, D4>;
  for (var c = 0u; c < D4; c++) { query[c] = q[i * D4 + c] * p.scale; }
  for (var c = 0u; c < DV4; c++) { down[c] = dout[i * DV4 + c]; }
  let end = select(p.end, min(p.end, i + 1u), has(CAUSAL));
  for (var j = p.start; j < end; j++) {
    if (i == j && skips_self()) { continue; }
    let scale = terms[2u * rows + j];
    var score = 0.0;
    for (var c = 0u; c < D4; c++) { score += dot(query[c], k[j * D4 + c]); }
    var slope = -delta;
    for (var c = 0u; c < DV4; c++) { slope += dot(down[c], v[j * DV4 + c]); }
    let factor = exp(score * scale - lse_i) * slope * scale;
    for (var c = 0u; c < D4; c++) { sum[c] += factor * k[j * D4 + c]; }
  }
  for (var c = 0u; c < D4; c++) {
    var value = sum[c] * p.scale;
    if (p.add != 0u) { value += gradient[i * D4 + c]; }
    gradient[i * D4 + c] = value;
  }
}

@compute @workgroup_size(WORKGROUP)
fn keys(@builtin(workgroup_id) group: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  let j = group_index(group) * WORKGROUP + lane;
  if (j >= p.n_kv) { return; }
  let rows = max(p.n_q, p.n_kv);
  let scale = terms[2u * rows + j];
  var key: array<vec4f, D4>;
  var value: array<vec4f, DV4>;
  var sum: array<vec4f, D4>;
  for (var c = 0u; c < D4; c++) { key[c] = k[j * D4 + c] * p.scale; }
  for (var c = 0u; c < DV4; c++) { value[c] = v[j * DV4 + c]; }
  for (var i = select(p.start, max(p.start, j), has(CAUSAL)); i < p.end; i++) {
    if (i == j && skips_self()) { continue; }
    var score = 0.0;
    for (var c = 0u; c < D4; c++) { score += dot(key[c], q[i * D4 + c]); }
    var slope = -terms[rows + i];
    for (var c = 0u; c < DV4; c++) { slope += dot(value[c], dout[i * DV4 + c]); }
    let factor = exp(score * scale - terms[i]) * slope;
    for (var c = 0u; c < D4; c++) { sum[c] += factor * q[i * D4 + c]; }
  }
  for (var c = 0u; c < D4; c++) {
    var total = sum[c] * p.scale;
    if (p.add != 0u) { total += gradient[j * D4 + c]; }
    gradient[j * D4 + c] = total;
  }
}

@group(0) @binding(3) var<storage, read> key_scale: array<f32>;         // [n_kv]           values
@group(0) @binding(4) var<storage, read> lse: array<f32>;               // [n_q]            values
@group(0) @binding(6) var<storage, read_write> dv: array<vec4f>;        // [n_kv, DV4]      values

@compute @workgroup_size(WORKGROUP)
fn values(@builtin(workgroup_id) group: vec3u,
          @builtin(local_invocation_index) lane: u32) {
  let j = group_index(group) * WORKGROUP + lane;
  if (j >= p.n_kv) { return; }
  let scale = key_scale[j];
  var key: array<vec4f, D4>;
  var sum: array<vec4f, DV4>;
  for (var c = 0u; c < D4; c++) { key[c] = k[j * D4 + c] * p.scale; }
  for (var i = select(p.start, max(p.start, j), has(CAUSAL)); i < p.end; i++) {
    if (i == j && has(SELF_EXCLUDE)) { continue; }
    var score = p.self_value;
    if (i != j || !has(SELF_VALUE)) {
      score = 0.0;
      for (var c = 0u; c < D4; c++) { score += dot(key[c], q[i * D4 + c]); }
      score *= scale;
    }
    let weight = exp(score - lse[i]);
    for (var c = 0u; c < DV4; c++) { sum[c] += weight * dout[i * DV4 + c]; }
  }
  for (var c = 0u; c < DV4; c++) {
    if (p.add != 0u) { sum[c] += dv[j * DV4 + c]; }
    dv[j * DV4 + c] = sum[c];
  }
}

// Exact attention on a block of rows of the score matrix: scores, softmax in place, weighted sum.

@group(0) @binding(1) var<storage, read> q: array<vec4f>;                  // [n_q, D4]         scores
@group(0) @binding(2) var<storage, read> k: array<vec4f>;                  // [n_kv, D4]        scores
@group(0) @binding(3) var<storage, read> key_scale: array<f32>;            // [n_kv]            scores
@group(0) @binding(4) var<storage, read_write> scores_out: array<f32>;     // [rows, n_kv]      scores

fn query_of(row: u32) -> u32 {
  return p.query_base + ((p.row_start + row) * p.query_stride) % p.query_count;
}

// A thread computes 4 x 4 scores, a workgroup of 8 x 8 threads 32 x 32.
@compute @workgroup_size(WORKGROUP)
fn scores(@builtin(workgroup_id) group: vec3u,
          @builtin(local_invocation_index) lane: u32) {
  let g = group_index(group);
  let tiles = (p.n_kv + 31u) / 32u;
  let row0 = (g / tiles) * 32u + (lane / 8u) * 4u;
  let key0 = (g % tiles) * 32u + (lane % 8u) * 4u;
  if (row0 >= p.rows || key0 >= p.n_kv) { return; }
  // Ragged edges compute a row or key twice and write it once.
  let last_row = p.rows - 1u;
  let last_key = p.n_kv - 1u;
  let queries = vec4u(query_of(row0), query_of(min(row0 + 1u, last_row)),
                      query_of(min(row0 + 2u, last_row)), query_of(min(row0 + 3u, last_row)));
  let keys = min(vec4u(key0) + vec4u(0u, 1u, 2u, 3u), vec4u(last_key));
  var sums: array<vec4f, 4>;
  for (var c = 0u; c < D4; c++) {
    let k0 = k[keys.x * D4 + c];
    let k1 = k[keys.y * D4 + c];
    let k2 = k[keys.z * D4 + c];
    let k3 = k[keys.w * D4 + c];
    for (var r = 0u; r < 4u; r++) {
      let x = q[queries[r] * D4 + c];
      sums[r] += vec4f(dot(x, k0), dot(x, k1), dot(x, k2), dot(x, k3));
    }
  }
  for (var r = 0u; r < 4u && row0 + r < p.rows; r++) {
    let i = queries[r];
    for (var t = 0u; t < 4u && key0 + t < p.n_kv; t++) {
      let j = key0 + t;
      var score = sums[r][t] * p.scale * key_scale[j];
      if (i == j && (p.flags & SELF_VALUE) != 0u) { score = p.self_value; }
      let masked = ((p.flags & CAUSAL) != 0u && j > i) || ((p.flags & SELF_EXCLUDE) != 0u && i == j);
      scores_out[(row0 + r) * p.n_kv + j] = select(score, EMPTY, masked);
    }
  }
}

@group(0) @binding(1) var<storage, read_write> block: array<f32>;          // [rows, n_kv]      softmax
@group(0) @binding(2) var<storage, read_write> lse: array<f32>;            // [row_start + rows] softmax

@compute @workgroup_size(ROW_WORKGROUP)
fn softmax(@builtin(workgroup_id) group: vec3u,
           @builtin(local_invocation_index) lane: u32) {
  let row = group_index(group);
  let start = row * p.n_kv;
  var top = EMPTY;
  for (var j = lane; j < p.n_kv; j += ROW_WORKGROUP) { top = max(top, block[start + j]); }
  top = row_max(lane, top);
  var total = 0.0;
  for (var j = lane; j < p.n_kv; j += ROW_WORKGROUP) {
    let score = block[start + j];
    let weight = select(exp(score - top), 0.0, score == EMPTY);
    block[start + j] = weight;
    total += weight;
  }
  total = row_sum(lane, total);
  let factor = select(0.0, 1.0 / total, total > 0.0);
  for (var j = lane; j < p.n_kv; j += ROW_WORKGROUP) { block[start + j] *= factor; }
  if (lane == 0u) { lse[p.row_start + row] = select(EMPTY, top + log(total), total > 0.0); }
}

@group(0) @binding(1) var<storage, read> weights: array<f32>;              // [rows, n_kv]      weighted_sum
@group(0) @binding(2) var<storage, read> v: array<vec4f>;                  // [n_kv, DV4]       weighted_sum
@group(0) @binding(3) var<storage, read_write> out: array<vec4f>;          // [row_start + rows, DV4] weighted_sum

// A thread adds up one vector of four rows over a slice of keys.
@compute @workgroup_size(WORKGROUP)
fn weighted_sum(@builtin(workgroup_id) group: vec3u,
                @builtin(local_invocation_index) lane: u32) {
  let cell = group_index(group) * WORKGROUP + lane;
  let row0 = (cell / DV4) * 4u;
  let c = cell % DV4;
  if (row0 >= p.rows) { return; }
  let starts = min(vec4u(row0) + vec4u(0u, 1u, 2u, 3u), vec4u(p.rows - 1u)) * p.n_kv;
  var sums: array<vec4f, 4>;
  for (var j = p.key_start; j < p.key_start + p.key_count; j++) {
    let value = v[j * DV4 + c];
    sums[0] += weights[starts.x + j] * value;
    sums[1] += weights[starts.y + j] * value;
    sums[2] += weights[starts.z + j] * value;
    sums[3] += weights[starts.w + j] * value;
  }
  for (var r = 0u; r < 4u && row0 + r < p.rows; r++) {
    let at = (p.row_start + row0 + r) * DV4 + c;
    if (p.key_start > 0u) { sums[r] += out[at]; }
    out[at] = sums[r];
  }
}

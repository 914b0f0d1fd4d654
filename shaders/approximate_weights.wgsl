// Weights of LSH attention on a block of rows, one thread a pair.

@group(0) @binding(1) var<storage, read> q: array<vec4f>;                 // [n, D4]
@group(0) @binding(2) var<storage, read> key_scale: array<f32>;           // [n]
@group(0) @binding(3) var<storage, read> chunk_of: array<u32>;            // [rounds, n]
@group(0) @binding(4) var<storage, read> buckets: array<u32>;             // [rounds, n]
@group(0) @binding(5) var<storage, read> lse: array<f32>;                 // [n]
@group(0) @binding(6) var<storage, read_write> weights: array<f32>;       // [rows, n]

@compute @workgroup_size(WORKGROUP)
fn approximate_weights(@builtin(workgroup_id) group: vec3u,
                       @builtin(local_invocation_index) lane: u32) {
  let g = group_index(group);
  let row = g / p.tiles;
  let j = (g % p.tiles) * WORKGROUP + lane;
  if (j >= p.lsh.n) { return; }
  let i = p.query_base + ((p.row_start + row) * p.query_stride) % p.query_count;
  var meetings = 0u;
  for (var round = 0u; round < p.lsh.rounds; round++) {
    for (var step = 0u; step <= p.lsh.before + p.lsh.after; step++) {
      meetings += select(0u, 1u, sees(i, j, round, step));
    }
  }
  var weight = 0.0;
  if (meetings > 0u && allowed(i, j) && lse[i] != EMPTY) {
    var score = p.self_value;
    if (i != j || (p.lsh.flags & SELF_VALUE) == 0u) {
      score = 0.0;
      for (var c = 0u; c < D4; c++) { score += dot(q[i * D4 + c], q[j * D4 + c]); }
      score *= p.scale * key_scale[j];
    }
    score -= correction(i, j);
    weight = f32(meetings) * exp(score - lse[i]);
  }
  weights[row * p.lsh.n + j] = weight;
}

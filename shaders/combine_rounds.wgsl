// out, lse <- the softmax over the rounds so far, one thread a row.

@group(0) @binding(1) var<storage, read> round_out: array<vec4f>;        // [n, DV4]
@group(0) @binding(2) var<storage, read> round_lse: array<f32>;          // [n]
@group(0) @binding(3) var<storage, read_write> out: array<vec4f>;        // [n, DV4]
@group(0) @binding(4) var<storage, read_write> lse: array<f32>;          // [n]

@compute @workgroup_size(WORKGROUP)
fn combine(@builtin(workgroup_id) group: vec3u,
           @builtin(local_invocation_index) lane: u32) {
  let i = group_index(group) * WORKGROUP + lane;
  if (i >= p.n) { return; }
  let now = round_lse[i];
  var old = EMPTY;
  if (p.first_round == 0u) { old = lse[i]; }
  let top = max(now, old);
  // A round without a key has no weight; without any key the row stays 0.
  let now_weight = select(exp(now - top), 0.0, now == EMPTY);
  let old_weight = select(exp(old - top), 0.0, old == EMPTY);
  let total = now_weight + old_weight;
  let seen = total > 0.0;
  for (var c = 0u; c < DV4; c++) {
    var value = vec4f();
    if (seen) { value = round_out[i * DV4 + c] * (now_weight / total); }
    if (old_weight > 0.0) { value += out[i * DV4 + c] * (old_weight / total); }
    out[i * DV4 + c] = value;
  }
  lse[i] = select(EMPTY, top + log(total), seen);
}

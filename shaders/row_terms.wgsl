// What the backward pass needs of a row besides its vectors, one thread a row: as a query its
// log-sum-exp and dout . out, as a key its scale.

@group(0) @binding(1) var<storage, read> out: array<vec4f>;             // [n_q, DV4]
@group(0) @binding(2) var<storage, read> dout: array<vec4f>;            // [n_q, DV4]
@group(0) @binding(3) var<storage, read> lse: array<f32>;               // [n_q]
@group(0) @binding(4) var<storage, read> key_scale: array<f32>;         // [n_kv]
@group(0) @binding(5) var<storage, read_write> terms: array<f32>;       // [3, max(n_q, n_kv)]

@compute @workgroup_size(WORKGROUP)
fn row_terms(@builtin(workgroup_id) group: vec3u,
             @builtin(local_invocation_index) lane: u32) {
  let i = group_index(group) * WORKGROUP + lane;
  let rows = max(p.n_q, p.n_kv);
  if (i >= rows) { return; }
  var term = vec3f();
  if (i < p.n_q) {
    term.x = lse[i];
    for (var c = 0u; c < DV4; c++) { term.y += dot(dout[i * DV4 + c], out[i * DV4 + c]); }
  }
  if (i < p.n_kv) { term.z = key_scale[i]; }
  terms[i] = term.x;
  terms[rows + i] = term.y;
  terms[2u * rows + i] = term.z;
}

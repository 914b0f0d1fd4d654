// projected (+)= E x over a slice of columns of E, one thread four rows of one vector.

@group(0) @binding(1) var<storage, read> e_transposed: array<vec4f>;       // [columns, k4]
@group(0) @binding(2) var<storage, read> x: array<vec4f>;                  // [columns, width4]
@group(0) @binding(3) var<storage, read> bias: array<f32>;                 // [k]
@group(0) @binding(4) var<storage, read_write> projected: array<vec4f>;    // [k, width4]

@compute @workgroup_size(WORKGROUP)
fn project(@builtin(workgroup_id) group: vec3u,
           @builtin(local_invocation_index) lane: u32) {
  let cell = group_index(group) * WORKGROUP + lane;
  if (cell >= p.k4 * p.width4) { return; }
  let i4 = cell / p.width4;
  let c = cell % p.width4;
  var sum: array<vec4f, 4>;
  for (var j = 0u; j < p.columns; j++) {
    let e = e_transposed[j * p.k4 + i4];
    let value = x[j * p.width4 + c];
    sum[0] += e.x * value;
    sum[1] += e.y * value;
    sum[2] += e.z * value;
    sum[3] += e.w * value;
  }
  for (var r = 0u; r < 4u; r++) {
    let i = i4 * 4u + r;
    if (i >= p.k) { continue; }
    if (p.first_slice == 0u) {
      sum[r] += projected[i * p.width4 + c];
    } else if (p.biased != 0u) {
      sum[r] += bias[i];
    }
    projected[i * p.width4 + c] = sum[r];
  }
}

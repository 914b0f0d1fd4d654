// The gradient by a key x from that by u(x) = x * scale, one thread a key. Where scale = 1 / length
// moves with x: dx = scale * (du - u (u . du)); else dx = scale * du.

@group(0) @binding(1) var<storage, read> keys: array<vec4f>;            // [n, D4]
@group(0) @binding(2) var<storage, read> key_scale: array<f32>;         // [n]
@group(0) @binding(3) var<storage, read> du: array<vec4f>;              // [n, D4]
@group(0) @binding(4) var<storage, read_write> dx: array<vec4f>;        // [n, D4]

@compute @workgroup_size(WORKGROUP)
fn key_norm_backward(@builtin(workgroup_id) group: vec3u,
                     @builtin(local_invocation_index) lane: u32) {
  let i = group_index(group) * WORKGROUP + lane;
  if (i >= p.n) { return; }
  let scale = key_scale[i];
  var square = 0.0;
  var along = 0.0;
  for (var c = 0u; c < D4; c++) {
    let x = keys[i * D4 + c];
    square += dot(x, x);
    along += dot(x * scale, du[i * D4 + c]);
  }
  // Below the least length the scale is a constant.
  let moves = (p.flags & KEY_NORM_RMS) != 0u || ((p.flags & KEY_NORM_MAX) != 0u && sqrt(square) > p.eps);
  along = select(0.0, along, moves);
  for (var c = 0u; c < D4; c++) {
    let at = i * D4 + c;
    var value = scale * (du[at] - keys[at] * scale * along);
    if (p.add != 0u) { value += dx[at]; }
    dx[at] = value;
  }
}

// u(x) = x * key_scale, one thread a key.

@group(0) @binding(1) var<storage, read> keys: array<vec4f>;            // [n, D4]
@group(0) @binding(2) var<storage, read_write> key_scale: array<f32>;   // [n]

@compute @workgroup_size(WORKGROUP)
fn key_norm(@builtin(workgroup_id) group: vec3u,
            @builtin(local_invocation_index) lane: u32) {
  let i = group_index(group) * WORKGROUP + lane;
  if (i >= p.n) { return; }
  var square = 0.0;
  for (var c = 0u; c < D4; c++) {
    let x = keys[i * D4 + c];
    square += dot(x, x);
  }
  var scale = 1.0;
  if ((p.flags & (KEY_NORM_MAX | KEY_NORM_RMS)) != 0u) {
    var length = max(sqrt(square), p.eps);
    if ((p.flags & KEY_NORM_RMS) != 0u) { length = sqrt(square + f32(p.d) * p.eps); }
    scale = select(0.0, 1.0 / length, length > SHORTEST);
  }
  key_scale[i] = scale;
}

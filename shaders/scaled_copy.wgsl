// to = factor * from, one thread a number.

@group(0) @binding(1) var<storage, read> source: array<f32>;
@group(0) @binding(2) var<storage, read_write> copied: array<f32>;

@compute @workgroup_size(WORKGROUP)
fn copy(@builtin(workgroup_id) group: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  let at = group_index(group) * WORKGROUP + lane;
  if (at < p.count) { copied[at] = p.factor * source[at]; }
}

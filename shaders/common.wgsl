// Constants and `struct Params` stand before this text, generated from src/steps.

@group(0) @binding(0) var<uniform> p: Params;

// A pass is run in slices: this is the workgroup's number in the whole pass.
fn group_index(group: vec3u) -> u32 {
  return p.first_group + group.x;
}

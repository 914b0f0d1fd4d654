// gelu(x) = x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), in place, one thread a number.

@group(0) @binding(1) var<storage, read_write> hidden: array<f32>;
@group(0) @binding(2) var<storage, read_write> gradient: array<f32>;  // backward

const ROOT = 0.7978845608;
const CUBE = 0.044715;

// exp(-2 y), y the argument of tanh, which some devices get wrong far from 0: gelu is x / (1 + this).
fn fall(x: f32) -> f32 {
  return exp(-clamp(2.0 * ROOT * (x + CUBE * x * x * x), -80.0, 80.0));
}

@compute @workgroup_size(WORKGROUP)
fn activate(@builtin(workgroup_id) group: vec3u,
            @builtin(local_invocation_index) lane: u32) {
  let at = group_index(group) * WORKGROUP + lane;
  if (at >= p.count) { return; }
  let x = hidden[at];
  hidden[at] = x / (1.0 + fall(x));
}

@compute @workgroup_size(WORKGROUP)
fn backward(@builtin(workgroup_id) group: vec3u,
            @builtin(local_invocation_index) lane: u32) {
  let at = group_index(group) * WORKGROUP + lane;
  if (at >= p.count) { return; }
  let x = hidden[at];
  let e = fall(x);
  let open = 1.0 / (1.0 + e);
  gradient[at] *= open + x * (2.0 * ROOT * (1.0 + 3.0 * CUBE * x * x)) * (e * open) * open;
  hidden[at] = x / (1.0 + e);
}

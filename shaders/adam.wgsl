// One step of Adam, one thread a parameter.

@group(0) @binding(1) var<storage, read> gradient: array<f32>;             // [count]
@group(0) @binding(2) var<storage, read_write> first: array<f32>;          // [count]  running mean
@group(0) @binding(3) var<storage, read_write> second: array<f32>;         // [count]  running mean of squares
@group(0) @binding(4) var<storage, read_write> value: array<f32>;          // [count]

@compute @workgroup_size(WORKGROUP)
fn adam(@builtin(workgroup_id) group: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  let at = group_index(group) * WORKGROUP + lane;
  if (at >= p.count) { return; }
  let slope = gradient[at];
  let mean = p.decay_first * first[at] + (1.0 - p.decay_first) * slope;
  let square = p.decay_second * second[at] + (1.0 - p.decay_second) * slope * slope;
  first[at] = mean;
  second[at] = square;
  value[at] -= p.rate * (mean * p.unbias_first) / (sqrt(square * p.unbias_second) + p.epsilon);
}

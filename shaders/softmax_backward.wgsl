// From the gradient of a softmax's weights to that of its products q k: dS = scale P (dP - sum P dP), in
// place, one workgroup a row.

@group(0) @binding(1) var<storage, read> weights: array<f32>;              // [rows, columns]       P
@group(0) @binding(2) var<storage, read_write> gradient: array<f32>;       // [rows, gradient_row]  dP, then dS

@compute @workgroup_size(ROW_WORKGROUP)
fn softmax_backward(@builtin(workgroup_id) group: vec3u,
                    @builtin(local_invocation_index) lane: u32) {
  let row = group_index(group);
  let from_weights = row * p.columns;
  let from_gradient = row * p.gradient_row;
  var sum = 0.0;
  for (var c = lane; c < p.columns; c += ROW_WORKGROUP) {
    sum += weights[from_weights + c] * gradient[from_gradient + c];
  }
  let mean = row_sum(lane, sum);
  for (var c = lane; c < p.columns; c += ROW_WORKGROUP) {
    let at = from_gradient + c;
    gradient[at] = p.scale * weights[from_weights + c] * (gradient[at] - mean);
  }
}

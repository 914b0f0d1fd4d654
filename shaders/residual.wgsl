// What a fit is wrong by: weight (value - target) in place with the squares of each row added up, one
// workgroup a row; then the sum over all rows, one workgroup.

@group(0) @binding(1) var<storage, read_write> value: array<f32>;          // [rows, value_row]   residual
@group(0) @binding(2) var<storage, read> wanted: array<f32>;               // [rows, target_row]  residual
@group(0) @binding(3) var<storage, read_write> row_loss: array<f32>;       // [rows]              residual

@compute @workgroup_size(ROW_WORKGROUP)
fn residual(@builtin(workgroup_id) group: vec3u,
            @builtin(local_invocation_index) lane: u32) {
  let row = group_index(group);
  var sum = 0.0;
  for (var c = lane; c < p.columns; c += ROW_WORKGROUP) {
    let at = row * p.value_row + c;
    let apart = value[at] - wanted[row * p.target_row + c];
    sum += apart * apart;
    value[at] = p.weight * apart;
  }
  sum = row_sum(lane, sum);
  if (lane == 0u) { row_loss[row] = sum; }
}

@group(0) @binding(1) var<storage, read> rows_lost: array<f32>;            // [rows]              total
@group(0) @binding(2) var<storage, read_write> loss: array<f32>;           // [steps]             total

@compute @workgroup_size(ROW_WORKGROUP)
fn total(@builtin(workgroup_id) group: vec3u,
         @builtin(local_invocation_index) lane: u32) {
  var sum = 0.0;
  for (var row = lane; row < p.rows; row += ROW_WORKGROUP) { sum += rows_lost[row]; }
  sum = row_sum(lane, sum);
  // Half the weight is one over the squared length of the target.
  if (lane == 0u && group_index(group) == 0u) { loss[p.step] = 0.5 * p.weight * sum; }
}

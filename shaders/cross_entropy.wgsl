// The loss of a section of rows, -log softmax(logits)[target], and its gradient in place of the logits.
// One workgroup a row.

@group(0) @binding(1) var<storage, read_write> logits: array<f32>;   // [rows, row]
@group(0) @binding(2) var<storage, read> targets: array<u32>;        // [row_start + rows]
@group(0) @binding(3) var<storage, read_write> loss: array<f32>;     // [row_start + rows]

@compute @workgroup_size(ROW_WORKGROUP)
fn section(@builtin(workgroup_id) group: vec3u,
           @builtin(local_invocation_index) lane: u32) {
  let row = group_index(group);
  let start = row * p.row;
  var top = EMPTY;
  for (var j = lane; j < p.vocabulary; j += ROW_WORKGROUP) { top = max(top, logits[start + j]); }
  top = row_max(lane, top);
  var total = 0.0;
  for (var j = lane; j < p.vocabulary; j += ROW_WORKGROUP) { total += exp(logits[start + j] - top); }
  total = row_sum(lane, total);
  let meant = targets[p.row_start + row];
  for (var j = lane; j < p.row; j += ROW_WORKGROUP) {
    var slope = 0.0;
    // What pads a row stays 0.
    if (j < p.vocabulary) {
      let logit = logits[start + j];
      slope = exp(logit - top) / total;
      if (j == meant) {
        slope -= 1.0;
        loss[p.row_start + row] = top - logit + log(total);
      }
    }
    logits[start + j] = slope;
  }
}

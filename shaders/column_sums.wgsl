// sums [+]= the columns of x, added up. A workgroup makes one column, in a tree over its lanes.

@group(0) @binding(1) var<storage, read> x: array<f32>;             // [rows, row]
@group(0) @binding(2) var<storage, read_write> sums: array<f32>;    // [row]

var<workgroup> partial: array<f32, WORKGROUP>;

@compute @workgroup_size(WORKGROUP)
fn add(@builtin(workgroup_id) group: vec3u,
       @builtin(local_invocation_index) lane: u32) {
  let column = group_index(group);
  var sum = 0.0;
  // What pads a row is 0, and its sum too.
  for (var i = p.start + lane; i < p.end; i += WORKGROUP) { sum += x[i * p.row + column]; }
  partial[lane] = sum;
  workgroupBarrier();
  for (var half = WORKGROUP / 2u; half > 0u; half /= 2u) {
    if (lane < half) { partial[lane] += partial[lane + half]; }
    workgroupBarrier();
  }
  if (lane == 0u) {
    var total = partial[0];
    if (p.accumulate != 0u) { total += sums[column]; }
    sums[column] = total;
  }
}

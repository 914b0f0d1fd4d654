// Exact probability on visible keys of a slice and visible strongest keys, one workgroup a row.

@group(0) @binding(1) var<storage, read> weights: array<f32>;             // [rows, n]  exact
@group(0) @binding(2) var<storage, read> top_index: array<u32>;           // [row_start + rows, TOP]
@group(0) @binding(3) var<storage, read> chunk_of: array<u32>;            // [rounds, n]
@group(0) @binding(4) var<storage, read> buckets: array<u32>;             // [rounds, n]
@group(0) @binding(5) var<storage, read_write> covered: array<vec2f>;     // [row_start + rows]  (mass, hits)

var<workgroup> partial: array<vec2f, ROW_WORKGROUP>;

@compute @workgroup_size(ROW_WORKGROUP)
fn coverage(@builtin(workgroup_id) group: vec3u,
            @builtin(local_invocation_index) lane: u32) {
  let row = group_index(group);
  let i = p.query_base + ((p.row_start + row) * p.query_stride) % p.query_count;
  var sum = vec2f();
  for (var j = p.key_start + lane; j < p.key_start + p.key_count; j += ROW_WORKGROUP) {
    if (visible(i, j)) { sum.x += weights[row * p.lsh.n + j]; }
  }
  for (var t = lane; t < p.count; t += ROW_WORKGROUP) {
    let j = top_index[(p.row_start + row) * TOP + t];
    if (j != NO_KEY && visible(i, j)) { sum.y += 1.0; }
  }
  partial[lane] = sum;
  workgroupBarrier();
  for (var half = ROW_WORKGROUP / 2u; half > 0u; half /= 2u) {
    if (lane < half) { partial[lane] += partial[lane + half]; }
    workgroupBarrier();
  }
  if (lane == 0u) {
    var before = 0.0;
    if (p.key_start > 0u) { before = covered[p.row_start + row].x; }
    covered[p.row_start + row] = vec2f(before + partial[0].x, partial[0].y);
  }
}

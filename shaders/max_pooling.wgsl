// The largest of each window, component by component, one thread a vector of one window. A slice of
// positions goes on from what those before it left.

@group(0) @binding(1) var<storage, read> x: array<vec4f>;                  // [count, width4]
@group(0) @binding(2) var<storage, read_write> pooled: array<vec4f>;       // [k, width4]

@compute @workgroup_size(WORKGROUP)
fn max_pooling(@builtin(workgroup_id) group: vec3u,
               @builtin(local_invocation_index) lane: u32) {
  let cell = group_index(group) * WORKGROUP + lane;
  if (cell >= p.k * p.width4) { return; }
  let i = cell / p.width4;
  let c = cell % p.width4;
  // The first n mod k windows are one longer.
  let start = i * (p.n / p.k) + min(i, p.n % p.k);
  let end = (i + 1u) * (p.n / p.k) + min(i + 1u, p.n % p.k);
  let first = max(start, p.start);
  let last = min(end, p.start + p.count);
  if (first >= last) { return; }
  var top = x[(first - p.start) * p.width4 + c];
  if (first > start) { top = max(top, pooled[cell]); }
  for (var j = first + 1u; j < last; j++) { top = max(top, x[(j - p.start) * p.width4 + c]); }
  pooled[cell] = top;
}

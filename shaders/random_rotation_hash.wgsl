// h(x) = argmax([xR; -xR]), one thread a position and round of one head.

@group(0) @binding(1) var<storage, read> x: array<vec4f>;               // [n, D4]
@group(0) @binding(2) var<storage, read> rotations: array<vec4f>;       // [rounds, columns, D4], R transposed
@group(0) @binding(3) var<storage, read_write> buckets: array<u32>;     // [rounds, n]

@compute @workgroup_size(WORKGROUP)
fn hash(@builtin(workgroup_id) group: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  let g = group_index(group);
  let round = g / p.tiles;
  let i = (g % p.tiles) * WORKGROUP + lane;
  if (i >= p.n) { return; }
  var row: array<vec4f, D4>;
  for (var c = 0u; c < D4; c++) { row[c] = x[i * D4 + c]; }

  let halves = vec4u(p.half_0, p.half_1, p.half_2, p.half_3);
  var column = round * p.columns;
  var bucket = 0u;
  var stride = 1u;
  for (var f = 0u; f < 4u && halves[f] > 0u; f++) {
    var high = EMPTY;     // first maximum of the projections
    var high_at = 0u;
    var low = -EMPTY;     // first minimum: the first maximum of the negated ones
    var low_at = 0u;
    for (var a = 0u; a < halves[f]; a++) {
      var projection = 0.0;
      for (var c = 0u; c < D4; c++) { projection += dot(row[c], rotations[column * D4 + c]); }
      if (projection > high) { high = projection; high_at = a; }
      if (projection < low) { low = projection; low_at = a; }
      column++;
    }
    bucket += stride * select(halves[f] + low_at, high_at, high >= -low);
    stride *= 2u * halves[f];
  }
  buckets[round * p.n + i] = bucket;
}

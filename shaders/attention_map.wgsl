// Counts computed pairs, one thread an entry of the sorted order of one round.

@group(0) @binding(1) var<storage, read> order: array<u32>;                      // [rounds, n]
@group(0) @binding(2) var<storage, read> chunk_of: array<u32>;                   // [rounds, n]
@group(0) @binding(3) var<storage, read> buckets: array<u32>;                    // [rounds, n]
@group(0) @binding(4) var<storage, read_write> row_pairs: array<atomic<u32>>;    // [n]
@group(0) @binding(5) var<storage, read_write> row_visits: array<atomic<u32>>;   // [n]
@group(0) @binding(6) var<storage, read_write> pixels: array<atomic<u32>>;       // [height, width]

// Whether the pair was already met in an earlier round or an earlier step of this one.
fn met_before(query: u32, key: u32, round: u32, step: u32) -> bool {
  for (var r = 0u; r <= round; r++) {
    let end = select(p.lsh.before + 1u + p.lsh.after, step, r == round);
    for (var s = 0u; s < end; s++) {
      if (sees(query, key, r, s)) { return true; }
    }
  }
  return false;
}

@compute @workgroup_size(WORKGROUP)
fn pairs(@builtin(workgroup_id) group: vec3u,
         @builtin(local_invocation_index) lane: u32) {
  let n = p.lsh.n;
  let g = group_index(group);
  let round = g / p.tiles;
  let entry = (g % p.tiles) * WORKGROUP + lane;
  if (entry >= n) { return; }
  let i = order[round * n + entry];
  let row = i - p.row_start;      // wraps to a large number above the window
  var found = 0u;
  var visits = 0u;
  for (var step = 0u; step <= p.lsh.before + p.lsh.after; step++) {
    let place = seen_chunk(round, entry / p.lsh.chunk_len, step);
    if (place.y == NO_KEY) { continue; }
    let part = bucket_entries(place, step, round, i);
    for (var e = part.x; e < part.y; e++) {
      let j = order[place.x * n + e];
      if (!allowed(i, j)) { continue; }
      visits++;
      if (met_before(i, j, round, step)) { continue; }
      found++;
      let col = j - p.col_start;
      if (row < p.row_count && col < p.col_count) {
        let at = (row * p.height / p.row_count) * p.width + col * p.width / p.col_count;
        atomicAdd(&pixels[at], 1u);
      }
    }
  }
  atomicAdd(&row_pairs[i], found);
  atomicAdd(&row_visits[i], visits);
}

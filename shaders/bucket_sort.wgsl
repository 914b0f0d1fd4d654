// Stable counting sort by (bucket, position), seven bits a pass. One workgroup owns a tile of the
// list, one thread one digit: it walks the tile in order, so equal digits keep their order.

@group(0) @binding(1) var<storage, read> buckets: array<u32>;            // [rounds, n]        count, scatter
@group(0) @binding(2) var<storage, read> order_in: array<u32>;           // [rounds, n]        count, scatter
@group(0) @binding(3) var<storage, read_write> table: array<u32>;        // [rounds, digits, tiles]

var<workgroup> tile_position: array<u32, SORT_TILE>;
var<workgroup> tile_digit: array<u32, SORT_TILE>;

// Loads the tile and returns how many entries it has.
fn load_tile(round: u32, tile: u32, lane: u32) -> u32 {
  let start = tile * SORT_TILE;
  let entries = min(SORT_TILE, p.n - start);
  for (var e = lane; e < entries; e += SORT_DIGITS) {
    var position = start + e;
    if (p.from_identity == 0u) { position = order_in[round * p.n + start + e]; }
    tile_position[e] = position;
    tile_digit[e] = (buckets[round * p.n + position] >> p.shift) & (SORT_DIGITS - 1u);
  }
  return entries;
}

@compute @workgroup_size(SORT_DIGITS)
fn count(@builtin(workgroup_id) group: vec3u,
         @builtin(local_invocation_index) digit: u32) {
  let g = group_index(group);
  let round = g / p.tiles;
  let tile = g % p.tiles;
  let entries = load_tile(round, tile, digit);
  workgroupBarrier();
  var found = 0u;
  for (var e = 0u; e < entries; e++) { found += select(0u, 1u, tile_digit[e] == digit); }
  table[(round * SORT_DIGITS + digit) * p.tiles + tile] = found;
}

@group(0) @binding(4) var<storage, read_write> order_out: array<u32>;    // [rounds, n]        scatter
@group(0) @binding(5) var<storage, read_write> chunk_of: array<u32>;     // [rounds, n]        scatter: chunk by position

@compute @workgroup_size(SORT_DIGITS)
fn scatter(@builtin(workgroup_id) group: vec3u,
           @builtin(local_invocation_index) digit: u32) {
  let g = group_index(group);
  let round = g / p.tiles;
  let tile = g % p.tiles;
  let entries = load_tile(round, tile, digit);
  workgroupBarrier();
  var at = table[(round * SORT_DIGITS + digit) * p.tiles + tile];
  for (var e = 0u; e < entries; e++) {
    if (tile_digit[e] == digit) {
      let position = tile_position[e];
      order_out[round * p.n + at] = position;
      chunk_of[round * p.n + position] = at / p.chunk_len;
      at++;
    }
  }
}

@group(0) @binding(1) var<storage, read_write> counts: array<u32>;       // [rounds, digits, tiles]   scan

var<workgroup> digit_total: array<u32, SORT_DIGITS>;

@compute @workgroup_size(SORT_DIGITS)
fn scan(@builtin(workgroup_id) group: vec3u,
        @builtin(local_invocation_index) digit: u32) {
  let row = (group_index(group) * SORT_DIGITS + digit) * p.tiles;
  var total = 0u;
  for (var tile = 0u; tile < p.tiles; tile++) { total += counts[row + tile]; }
  digit_total[digit] = total;
  workgroupBarrier();
  var sum = 0u;
  for (var before = 0u; before < digit; before++) { sum += digit_total[before]; }
  for (var tile = 0u; tile < p.tiles; tile++) {
    let here = counts[row + tile];
    counts[row + tile] = sum;
    sum += here;
  }
}

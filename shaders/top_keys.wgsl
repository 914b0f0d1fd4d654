// The strongest keys of each row, one thread a row: a list kept sorted while the row is read. Equal
// scores keep the order of positions, since a later one goes behind.

@group(0) @binding(1) var<storage, read> scores: array<f32>;               // [rows, n_kv]
@group(0) @binding(2) var<storage, read_write> top_index: array<u32>;      // [row_start + rows, TOP]
@group(0) @binding(3) var<storage, read_write> top_score: array<f32>;      // [row_start + rows, TOP]

@compute @workgroup_size(WORKGROUP)
fn top_keys(@builtin(workgroup_id) group: vec3u,
            @builtin(local_invocation_index) lane: u32) {
  let row = group_index(group) * WORKGROUP + lane;
  if (row >= p.rows) { return; }
  let list = (p.row_start + row) * TOP;
  var held = 0u;                 // keys in the list
  var weakest = EMPTY;           // score of its last one, once it is full
  if (p.key_start == 0u) {
    for (var t = 0u; t < TOP; t++) {
      top_index[list + t] = NO_KEY;
      top_score[list + t] = EMPTY;
    }
  } else {
    while (held < p.count && top_index[list + held] != NO_KEY) { held++; }
    if (held == p.count) { weakest = top_score[list + held - 1u]; }
  }
  for (var j = p.key_start; j < p.key_start + p.key_count; j++) {
    let score = scores[row * p.n_kv + j];
    // EMPTY is a masked key; a full list lets only a stronger one in.
    if (score > weakest) {
      var at = held;
      if (held == p.count) { at--; } else { held++; }
      while (at > 0u && top_score[list + at - 1u] < score) {
        top_score[list + at] = top_score[list + at - 1u];
        top_index[list + at] = top_index[list + at - 1u];
        at--;
      }
      top_score[list + at] = score;
      top_index[list + at] = j;
      if (held == p.count) { weakest = top_score[list + held - 1u]; }
    }
  }
}

// The strongest keys of each row, one workgroup a row: the next one is the best that comes after
// the one before it in the order (higher score, lower position).

@group(0) @binding(1) var<storage, read> scores: array<f32>;               // [rows, n_kv]
@group(0) @binding(2) var<storage, read_write> top_index: array<u32>;      // [row_start + rows, TOP]
@group(0) @binding(3) var<storage, read_write> top_score: array<f32>;      // [row_start + rows, TOP]

var<workgroup> best_score: array<f32, ROW_WORKGROUP>;
var<workgroup> best_index: array<u32, ROW_WORKGROUP>;

// Whether (score, index) stands before (other, other_index).
fn stronger(score: f32, index: u32, other: f32, other_index: u32) -> bool {
  return score > other || (score == other && index < other_index);
}

@compute @workgroup_size(ROW_WORKGROUP)
fn top_keys(@builtin(workgroup_id) group: vec3u,
            @builtin(local_invocation_index) lane: u32) {
  let row = group_index(group);
  let list = (p.row_start + row) * TOP;
  var last_score = -EMPTY;
  var last_index = 0u;
  var first = true;
  for (var t = 0u; t < p.count; t++) {
    var score = EMPTY;
    var index = NO_KEY;
    for (var j = lane; j < p.n_kv; j += ROW_WORKGROUP) {
      let candidate = scores[row * p.n_kv + j];
      let comes_after = first || stronger(last_score, last_index, candidate, j);
      if (candidate != EMPTY && comes_after && stronger(candidate, j, score, index)) {
        score = candidate;
        index = j;
      }
    }
    best_score[lane] = score;
    best_index[lane] = index;
    workgroupBarrier();
    for (var half = ROW_WORKGROUP / 2u; half > 0u; half /= 2u) {
      if (lane < half && stronger(best_score[lane + half], best_index[lane + half], best_score[lane], best_index[lane])) {
        best_score[lane] = best_score[lane + half];
        best_index[lane] = best_index[lane + half];
      }
      workgroupBarrier();
    }
    last_score = best_score[0];
    last_index = best_index[0];
    first = false;
    workgroupBarrier();
    if (lane == 0u) {
      top_index[list + t] = last_index;
      top_score[list + t] = last_score;
    }
  }
  for (var t = p.count + lane; t < TOP; t += ROW_WORKGROUP) {
    top_index[list + t] = NO_KEY;
    top_score[list + t] = EMPTY;
  }
}

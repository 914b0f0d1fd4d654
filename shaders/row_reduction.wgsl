// What the lanes of a workgroup have together; every lane calls and is told.

var<workgroup> partial: array<f32, ROW_WORKGROUP>;

fn row_sum(lane: u32, mine: f32) -> f32 {
  partial[lane] = mine;
  workgroupBarrier();
  for (var half = ROW_WORKGROUP / 2u; half > 0u; half /= 2u) {
    if (lane < half) { partial[lane] += partial[lane + half]; }
    workgroupBarrier();
  }
  let sum = partial[0];
  workgroupBarrier();
  return sum;
}

fn row_max(lane: u32, mine: f32) -> f32 {
  partial[lane] = mine;
  workgroupBarrier();
  for (var half = ROW_WORKGROUP / 2u; half > 0u; half /= 2u) {
    if (lane < half) { partial[lane] = max(partial[lane], partial[lane + half]); }
    workgroupBarrier();
  }
  let top = partial[0];
  workgroupBarrier();
  return top;
}

// Walks through the sorted order. Reads also the binding order, [rounds, n].

// The entries (first, end) of the sorted order that a pass walks in the chunk at a step.
fn entries(chunk: u32, step: u32) -> vec2u {
  let slot = step * p.lsh.chunk_len;
  let part = clamp(vec2u(p.lsh.slot_start, p.lsh.slot_start + p.lsh.slot_count), vec2u(slot),
                   vec2u(slot + p.lsh.chunk_len)) - slot;
  return min(chunk * p.lsh.chunk_len + part, vec2u(p.lsh.n));
}

// Those of them in the bucket that `position` has in `round`, where only the same bucket counts.
// Buckets ascend in the sorted order: its entries lie side by side.
fn bucket_entries(place: vec2u, step: u32, round: u32, position: u32) -> vec2u {
  let part = entries(place.y, step);
  if ((p.lsh.flags & SAME_BUCKET) == 0u) { return part; }
  if (place.x != round) { return part.xx; }
  let bucket = buckets[round * p.lsh.n + position];
  return vec2u(first_at_least(part, round, bucket), first_at_least(part, round, bucket + 1u));
}

// The first entry in a part of the sorted order whose bucket is no smaller; its end when there is none.
fn first_at_least(part: vec2u, round: u32, bucket: u32) -> u32 {
  let start = round * p.lsh.n;
  var low = part.x;
  var high = part.y;
  while (low < high) {
    let middle = (low + high) / 2u;
    if (buckets[start + order[start + middle]] < bucket) { low = middle + 1u; } else { high = middle; }
  }
  return low;
}

// The chunk, as (round, chunk), that sees `chunk` at a step of its own window: the inverse of seen_chunk.
fn seeing_chunk(round: u32, chunk: u32, step: u32) -> vec2u {
  let chunks = p.lsh.chunks;
  let before = chunk + p.lsh.before;
  if ((p.lsh.flags & WRAP_ACROSS_ROUNDS) != 0u) {
    let all = p.lsh.rounds * chunks;
    let at = (round * chunks + before + 8u * all - step) % all;
    return vec2u(at / chunks, at % chunks);
  }
  if ((p.lsh.flags & WRAP_IN_ROUND) != 0u) { return vec2u(round, (before + 8u * chunks - step) % chunks); }
  if (before < step || before - step >= chunks) { return vec2u(round, NO_KEY); }
  return vec2u(round, before - step);
}

// Who sees whom. Reads p.lsh: Geometry and the bindings chunk_of and buckets, both [rounds, n].

// The chunk at a step of the window of `chunk`, as (round, chunk), or NO_KEY where there is none.
// Steps count from the first chunk before; 8 whole turns keep the difference positive.
fn seen_chunk(round: u32, chunk: u32, step: u32) -> vec2u {
  let chunks = p.lsh.chunks;
  if ((p.lsh.flags & WRAP_ACROSS_ROUNDS) != 0u) {
    let all = p.lsh.rounds * chunks;
    let at = (round * chunks + chunk + step + 8u * all - p.lsh.before) % all;
    return vec2u(at / chunks, at % chunks);
  }
  if ((p.lsh.flags & WRAP_IN_ROUND) != 0u) {
    return vec2u(round, (chunk + step + 8u * chunks - p.lsh.before) % chunks);
  }
  let at = chunk + step;
  if (at < p.lsh.before || at - p.lsh.before >= chunks) { return vec2u(round, NO_KEY); }
  return vec2u(round, at - p.lsh.before);
}

fn allowed(query: u32, key: u32) -> bool {
  return !(((p.lsh.flags & CAUSAL) != 0u && key > query) || ((p.lsh.flags & SELF_EXCLUDE) != 0u && key == query));
}

fn bucket_ok(query: u32, key: u32, round: u32, other: u32) -> bool {
  let n = p.lsh.n;
  return (p.lsh.flags & SAME_BUCKET) == 0u
    || (other == round && buckets[round * n + query] == buckets[round * n + key]);
}

fn sees(query: u32, key: u32, round: u32, step: u32) -> bool {
  let place = seen_chunk(round, chunk_of[round * p.lsh.n + query], step);
  return place.y != NO_KEY && chunk_of[place.x * p.lsh.n + key] == place.y && bucket_ok(query, key, round, place.x);
}

// Whether the key's chunk of the same round lies in the query's window.
fn met(query: u32, key: u32, round: u32) -> bool {
  let mine = chunk_of[round * p.lsh.n + query];
  let its = chunk_of[round * p.lsh.n + key];
  if (!bucket_ok(query, key, round, round)) { return false; }
  if ((p.lsh.flags & (WRAP_ACROSS_ROUNDS | WRAP_IN_ROUND)) == 0u) {
    return its + p.lsh.before >= mine && its <= mine + p.lsh.after;
  }
  for (var step = 0u; step <= p.lsh.before + p.lsh.after; step++) {
    let place = seen_chunk(round, mine, step);
    if (place.x == round && place.y == its) { return true; }
  }
  return false;
}

// N_ij of the Reformer paper's appendix A.
fn pair_count(query: u32, key: u32) -> u32 {
  var count = 0u;
  for (var round = 0u; round < p.lsh.rounds; round++) { count += select(0u, 1u, met(query, key, round)); }
  return count;
}

// What the pair count takes off a score: ln(N_ij + eps). A pair that is only met across rounds has
// N_ij = 0; without an epsilon there is nothing to take off.
fn correction(query: u32, key: u32) -> f32 {
  if ((p.lsh.flags & PAIR_COUNT) == 0u) { return 0.0; }
  let count = f32(pair_count(query, key)) + p.lsh.pair_count_eps;
  return select(0.0, log(count), count > 0.0);
}

// Whether the pair is computed in some round, masks included.
fn visible(query: u32, key: u32) -> bool {
  if (!allowed(query, key)) { return false; }
  for (var round = 0u; round < p.lsh.rounds; round++) {
    for (var step = 0u; step <= p.lsh.before + p.lsh.after; step++) {
      if (sees(query, key, round, step)) { return true; }
    }
  }
  return false;
}

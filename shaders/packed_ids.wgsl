// Small whole numbers of p.bits bits each, p.per_word of them in a word, the first in its lowest bits.

@group(0) @binding(1) var<storage, read> ids: array<u32>;             // [count]                    pack
@group(0) @binding(2) var<storage, read_write> words: array<u32>;     // [ceil(count / per_word)]   pack

// One thread a word.
@compute @workgroup_size(WORKGROUP)
fn pack(@builtin(workgroup_id) group: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  let at = group_index(group) * WORKGROUP + lane;
  let start = at * p.per_word;
  if (start >= p.count) { return; }
  var word = 0u;
  for (var i = 0u; i < min(p.per_word, p.count - start); i++) { word |= ids[start + i] << (i * p.bits); }
  words[at] = word;
}

@group(0) @binding(1) var<storage, read> held: array<u32>;            // [ceil(count / per_word)]   unpack
@group(0) @binding(2) var<storage, read_write> unpacked: array<u32>;  // [count]                    unpack

// One thread an id.
@compute @workgroup_size(WORKGROUP)
fn unpack(@builtin(workgroup_id) group: vec3u,
          @builtin(local_invocation_index) lane: u32) {
  let at = group_index(group) * WORKGROUP + lane;
  if (at >= p.count) { return; }
  unpacked[at] = (held[at / p.per_word] >> (at % p.per_word * p.bits)) & ((1u << p.bits) - 1u);
}

//! The first block of a ChaCha8 stream.
//!
//! `rand_chacha` makes four blocks at a time, which is fast for who needs them. Most entities draw
//! two or three numbers, and a block holds eight.

/// Numbers in a block.
pub(super) const BLOCK: usize = 8;

/// The first numbers of a stream: what `rand_chacha::ChaCha8Rng` gives for this seed and stream.
///
/// ChaCha with 8 rounds, a 64-bit counter and a 64-bit stream (D. J. Bernstein, "ChaCha, a variant of
/// Salsa20", 2008).
pub(super) fn first_block(seed: &[u8; 32], stream: u64) -> [u64; BLOCK] {
    let key = |at: usize| {
        let at = 4 * at;
        u32::from_le_bytes([seed[at], seed[at + 1], seed[at + 2], seed[at + 3]])
    };
    // "expand 32-byte k", the key, the counter, the stream.
    let start = [
        0x6170_7865,
        0x3320_646e,
        0x7962_2d32,
        0x6b20_6574,
        key(0),
        key(1),
        key(2),
        key(3),
        key(4),
        key(5),
        key(6),
        key(7),
        0,
        0,
        stream as u32,
        (stream >> 32) as u32,
    ];
    let mut words = start;
    for _ in 0..4 {
        quarter_round::<0, 4, 8, 12>(&mut words);
        quarter_round::<1, 5, 9, 13>(&mut words);
        quarter_round::<2, 6, 10, 14>(&mut words);
        quarter_round::<3, 7, 11, 15>(&mut words);
        quarter_round::<0, 5, 10, 15>(&mut words);
        quarter_round::<1, 6, 11, 12>(&mut words);
        quarter_round::<2, 7, 8, 13>(&mut words);
        quarter_round::<3, 4, 9, 14>(&mut words);
    }
    let word = |at: usize| u64::from(words[at].wrapping_add(start[at]));
    std::array::from_fn(|pair| word(2 * pair + 1) << 32 | word(2 * pair))
}

/// On four of the words, whose places are constants, so that all stay in registers.
#[inline(always)]
fn quarter_round<const A: usize, const B: usize, const C: usize, const D: usize>(
    words: &mut [u32; 16],
) {
    words[A] = words[A].wrapping_add(words[B]);
    words[D] = (words[D] ^ words[A]).rotate_left(16);
    words[C] = words[C].wrapping_add(words[D]);
    words[B] = (words[B] ^ words[C]).rotate_left(12);
    words[A] = words[A].wrapping_add(words[B]);
    words[D] = (words[D] ^ words[A]).rotate_left(8);
    words[C] = words[C].wrapping_add(words[D]);
    words[B] = (words[B] ^ words[C]).rotate_left(7);
}

#[cfg(test)]
mod tests {
    use headway_shared::digest::mix;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::{Rng, SeedableRng};

    use super::*;

    #[test]
    fn it_is_that_of_the_library() {
        for case in 0..1_000 {
            let word = |at: u64| mix(8 * case + at + 1);
            let mut seed = [0; 32];
            for (bytes, at) in seed.chunks_exact_mut(8).zip(0..) {
                bytes.copy_from_slice(&word(at).to_le_bytes());
            }
            let stream = word(7) >> (case % 64);
            let mut library = ChaCha8Rng::from_seed(seed);
            library.set_stream(stream);
            assert_eq!(first_block(&seed, stream), std::array::from_fn(|_| library.next_u64()));
        }
    }
}

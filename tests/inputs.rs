//! The inputs: hand-worked cases, statistics, hostile files, and bits that a reference in another
//! language (`inputs_reference.py`) made.

use attention_lab::inputs::{
    DuplicationInput, Input, InputError, Picture, PictureInput, PointsInput, Shown, build, dims, fits, row_errors,
    sample_bytes, sample_path,
};
use attention_lab::plan::Limit;
use attention_lab::problem::{Projections, Rotations};
use attention_lab::random::{Stream, bits};
use attention_lab::semantics::{Choice, SelfRule, Semantics};
use attention_lab::settings::{Arrangement, InputKind, Projection, Sample, Settings};
use attention_lab::steps::EMPTY;
use image::{ExtendedColorType, ImageEncoder, Rgb, RgbImage, Rgba, RgbaImage};
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

fn now<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return output;
        }
    }
}

fn made(settings: &Settings, picture: Option<&Picture>) -> Input {
    let input = now(build(settings, picture)).unwrap();
    let (p, d) = (&input.problem, input.problem.dims);
    assert_eq!(d, dims(settings));
    assert_eq!(p.q.len(), (d.heads * d.n_q * d.d) as usize);
    assert_eq!(p.k.len(), (d.k_heads * d.n_kv * d.d) as usize);
    assert_eq!(p.v.len(), (d.v_heads * d.n_kv * d.d_v) as usize);
    assert!([&p.q, &p.k, &p.v].iter().all(|values| values.iter().all(|x| x.is_finite())));
    input
}

fn pictured(settings: &Settings, picture: &Picture) -> (Input, PictureInput) {
    let input = made(settings, Some(picture));
    let Shown::Picture(shown) = input.shown.clone() else { panic!("a picture is shown as one") };
    (input, shown)
}

fn pointed(settings: &Settings) -> (Input, PointsInput) {
    let input = made(settings, None);
    let Shown::Points(shown) = input.shown.clone() else { panic!("points are shown as points") };
    (input, shown)
}

fn duplicated(settings: &Settings) -> (Input, DuplicationInput) {
    let input = made(settings, None);
    let Shown::Duplication(shown) = input.shown.clone() else { panic!("the task is shown as one") };
    (input, shown)
}

fn clusters() -> Settings {
    Settings { input: InputKind::Clusters, ..Settings::default() }
}

fn duplication() -> Settings {
    Settings { input: InputKind::Duplication, ..Settings::default() }
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

fn row(values: &[f32], width: u32, at: u32) -> &[f32] {
    &values[(at * width) as usize..][..width as usize]
}

/// FNV-1a over the bytes of q, k and v.
fn fingerprint(input: &Input) -> u64 {
    let p = &input.problem;
    let bytes = [&p.q, &p.k, &p.v].into_iter().flatten().flat_map(|x| x.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |word, byte| (word ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn small_picture() -> Picture {
    Picture::new(RgbImage::from_fn(6, 4, |x, y| Rgb([x * 40, y * 60, x * y * 17].map(|c| c as u8))))
}

fn sample(sample: Sample) -> Picture {
    Picture::decode(sample_bytes(sample).unwrap()).unwrap()
}

#[test]
fn inputs_are_the_bits_of_the_reference() {
    let common = Settings { seed: 7, d: 8, heads: 2, sharpness: 3.0, ..Settings::default() };
    let points = Settings { n: 50, clusters: 5, tightness: 0.7, input: InputKind::Clusters, ..common.clone() };
    assert_eq!(fingerprint(&made(&points, None)), 0xff4d_0f97_0564_0361);
    let task = Settings { n: 21, noise: 0.25, input: InputKind::Duplication, ..common.clone() };
    assert_eq!(fingerprint(&made(&task, None)), 0x5979_3c3a_f8c5_3962);
    let picture = Settings { n: 6, d: 5, patch: 2, position: 0.6, ..common };
    assert_eq!(fingerprint(&made(&picture, Some(&small_picture()))), 0x6906_4631_add0_5523);
}

#[test]
fn every_input_follows_its_seed() {
    for input in [InputKind::Picture, InputKind::Clusters, InputKind::Duplication] {
        let settings = Settings { input, n: 40, d: 9, heads: 2, ..Settings::default() };
        let other = Settings { seed: 2, ..settings.clone() };
        let picture = small_picture();
        let first = made(&settings, Some(&picture));
        assert_eq!(first, made(&settings, Some(&picture)));
        assert_ne!(first.problem.k, made(&other, Some(&picture)).problem.k);
        assert_eq!(first.problem.rotations, Rotations::Seeded(1));
        assert_eq!(first.problem.projections, Projections::Mean);
        let gaussian = Settings { projection: Projection::Gaussian, ..settings };
        assert_eq!(made(&gaussian, Some(&picture)).problem.projections, Projections::Gaussian(1));
    }
}

#[test]
fn q_is_k_at_the_length_of_sharpness() {
    for (input, heads) in [(InputKind::Picture, 3), (InputKind::Clusters, 3), (InputKind::Duplication, 3)] {
        let settings = Settings { input, heads, n: 57, d: 30, sharpness: 12.0, ..Settings::default() };
        let p = made(&settings, Some(&small_picture())).problem;
        for head in 0..heads {
            for i in 0..settings.n {
                let q = row(&p.q, 30, head * settings.n + i);
                let k = row(&p.k, 30, (head % p.dims.k_heads) * settings.n + i);
                // Each of the d + 2 roundings of a length is at most 2^-24 of it.
                assert!((dot(k, k).sqrt() - 1.0).abs() < 32.0 * 2f64.powi(-24));
                assert!(q.iter().zip(k).all(|(q, k)| (q - 12.0 * k).abs() <= 1e-6 * q.abs()));
            }
        }
    }
}

#[test]
fn a_picture_of_the_right_size_is_cut_and_not_changed() {
    let settings = Settings { n: 6, patch: 2, ..Settings::default() };
    let (input, shown) = pictured(&settings, &small_picture());
    assert_eq!((shown.rows, shown.cols, input.problem.dims.d_v), (2, 3, 12));
    // Token 4 is row 1, column 1: pixels (2, 2), (3, 2), (2, 3), (3, 3).
    let expected = [[80, 120, 68], [120, 120, 102], [80, 180, 102], [120, 180, 153]];
    let pixels: Vec<f32> = expected.as_flattened().iter().map(|c| *c as f32 / 255.0).collect();
    assert_eq!(row(&input.problem.v, 12, 4), pixels);
    assert_eq!(shown.place(4), (1, 1));
}

#[test]
fn two_pixels_give_opposite_queries() {
    let picture = Picture::new(RgbImage::from_raw(2, 1, vec![0, 0, 0, 255, 0, 0]).unwrap());
    let settings = Settings { n: 2, patch: 1, position: 0.0, sharpness: 5.0, d: 16, ..Settings::default() };
    let (input, shown) = pictured(&settings, &picture);
    assert_eq!((shown.rows, shown.cols), (1, 2));
    assert_eq!(input.problem.v, [0.0, 0.0, 0.0, 1.0, 0.0, 0.0]);
    assert!(row(&input.problem.k, 16, 0).iter().zip(row(&input.problem.k, 16, 1)).all(|(a, b)| *a == -*b));
}

#[test]
fn a_flat_picture_without_positions_has_zero_queries() {
    let picture = Picture::new(RgbImage::from_pixel(8, 8, Rgb([9, 9, 9])));
    let settings = Settings { n: 16, position: 0.0, ..Settings::default() };
    let p = pictured(&settings, &picture).0.problem;
    assert!(p.q.iter().chain(&p.k).all(|x| *x == 0.0));
}

#[test]
fn keys_keep_the_angles_of_patches() {
    let settings = Settings { n: 64, position: 0.0, d: 128, heads: 16, ..Settings::default() };
    let p = pictured(&settings, &sample(Sample::Cat)).0.problem;
    let mean: Vec<f32> = (0..48).map(|c| (0..64).map(|i| row(&p.v, 48, i)[c]).sum::<f32>() / 64.0).collect();
    let centred = |i: u32| row(&p.v, 48, i).iter().zip(&mean).map(|(x, m)| x - m).collect::<Vec<f32>>();
    for (i, j) in [(0, 1), (3, 40), (17, 60), (30, 31), (5, 58)] {
        let (a, b) = (centred(i), centred(j));
        let wanted = dot(&a, &b) / (dot(&a, &a) * dot(&b, &b)).sqrt();
        let cosine = |head: u32| dot(row(&p.k, 128, head * 64 + i), row(&p.k, 128, head * 64 + j));
        let got = (0..16).map(cosine).sum::<f64>() / 16.0;
        // A projected cosine has variance (1 - c^2)^2 / d and a bias below 1 / d; five standard errors of 16 heads.
        assert!((got - wanted).abs() < 5.0 / (16f64 * 128.0).sqrt() + 1.0 / 128.0, "{i} {j}: {got} for {wanted}");
    }
}

#[test]
fn places_are_alike_by_their_distance() {
    let picture = Picture::new(RgbImage::from_pixel(40, 40, Rgb([9, 9, 9])));
    let settings = Settings { n: 400, position: 1.0, d: 128, heads: 16, ..Settings::default() };
    let p = pictured(&settings, &picture).0.problem;
    for (token, distance) in [(0, 0.0), (1, 1.0), (20, 1.0), (63, 18f64.sqrt()), (199, f64::hypot(9.0, 19.0))] {
        let cosine = |head: u32| dot(row(&p.k, 128, head * 400), row(&p.k, 128, head * 400 + token));
        let got = (0..16).map(cosine).sum::<f64>() / 16.0;
        let wanted = (-0.5 * (distance / (0.15 * 20.0)).powi(2)).exp();
        assert!((got - wanted).abs() < 5.0 / (16f64 * 128.0).sqrt(), "{token}: {got} for {wanted}");
    }
}

#[test]
fn any_length_makes_a_grid() {
    for which in [Sample::Astronaut, Sample::Cat] {
        let picture = sample(which);
        for n in [1, 2, 63, 100, 257, 1009] {
            for patch in [1, 4, 6] {
                let settings = Settings { n, patch, d: 4, ..Settings::default() };
                let (input, shown) = pictured(&settings, &picture);
                assert!(shown.rows * shown.cols >= n && (shown.rows - 1) * shown.cols < n);
                for token in 0..n {
                    let (row, col) = shown.place(token);
                    assert_eq!(shown.token_at(col * patch, row * patch), Some(token));
                    assert_eq!(shown.token_at((col + 1) * patch - 1, (row + 1) * patch - 1), Some(token));
                }
                assert_eq!(shown.token_at(shown.cols * patch, 0), None);
                assert_eq!(shown.token_at(0, shown.rows * patch), None);
                let photograph = shown.photograph();
                assert_eq!(photograph.dimensions(), (shown.cols * patch, shown.rows * patch));
                let absent = photograph.pixels().filter(|pixel| pixel[3] == 0).count() as u32;
                assert_eq!(absent, (shown.rows * shown.cols - n) * patch * patch);
                assert_eq!(shown.assemble(&input.problem.v), photograph);
            }
        }
    }
}

#[test]
fn a_strip_still_fits_a_texture() {
    for (width, height) in [(3000, 1), (1, 3000)] {
        let picture = Picture::new(RgbImage::new(width, height));
        let settings = Settings { n: 9000, patch: 2, d: 4, ..Settings::default() };
        let photograph = pictured(&settings, &picture).1.photograph();
        assert!(photograph.width().max(photograph.height()) <= 8192);
    }
}

#[test]
fn row_errors_are_lengths() {
    assert_eq!(row_errors(&[1.0, 2.0, 0.0, 0.0], &[1.0, 2.0, 3.0, -4.0], 2), [0.0, 5.0]);
}

#[test]
fn samples_are_shipped_where_the_page_looks() {
    let web = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("web");
    for (which, size) in [(Sample::Astronaut, (512, 512)), (Sample::Cat, (451, 300))] {
        let bytes = std::fs::read(web.join(sample_path(which).unwrap())).unwrap();
        assert_eq!(bytes, sample_bytes(which).unwrap());
        let picture = Picture::decode(&bytes).unwrap();
        assert_eq!((picture.width(), picture.height()), size);
    }
    assert_eq!(sample_path(Sample::Own), None);
    assert_eq!(now(build(&Settings::default(), None)), Err(InputError::NoPicture));
}

fn png(picture: &RgbaImage) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (width, height) = picture.dimensions();
    image::codecs::png::PngEncoder::new(&mut bytes)
        .write_image(picture, width, height, ExtendedColorType::Rgba8)
        .unwrap();
    bytes
}

fn jpeg(picture: &RgbImage, exif: Option<Vec<u8>>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = image::codecs::jpeg::JpegEncoder::new_with_quality(&mut bytes, 95);
    if let Some(exif) = exif {
        encoder.set_exif_metadata(exif).unwrap();
    }
    encoder.encode_image(picture).unwrap();
    bytes
}

/// The checksum of a PNG chunk.
fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 })
    })
}

/// A small PNG whose header claims another size.
fn claiming_png(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = png(&RgbaImage::new(4, 4));
    bytes[16..20].copy_from_slice(&width.to_be_bytes());
    bytes[20..24].copy_from_slice(&height.to_be_bytes());
    let sum = crc(&bytes[12..29]).to_be_bytes();
    bytes[29..33].copy_from_slice(&sum);
    bytes
}

/// A small JPEG whose frame header claims another size.
fn claiming_jpeg(width: u16, height: u16) -> Vec<u8> {
    let mut bytes = jpeg(&RgbImage::new(8, 8), None);
    let frame = bytes.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap();
    bytes[frame + 5..frame + 7].copy_from_slice(&height.to_be_bytes());
    bytes[frame + 7..frame + 9].copy_from_slice(&width.to_be_bytes());
    bytes
}

#[test]
fn transparent_pictures_lie_on_white() {
    let pixels = [[100, 0, 200, 0], [100, 0, 200, 255], [100, 0, 200, 128]];
    let picture = RgbaImage::from_fn(3, 1, |x, _| Rgba(pixels[x as usize]));
    let settings = Settings { n: 3, patch: 1, ..Settings::default() };
    let (_, shown) = pictured(&settings, &Picture::decode(&png(&picture)).unwrap());
    // 100 * 128/255 + 255 * 127/255 = 177.2, and so on.
    let expected = [[255, 255, 255, 255], [100, 0, 200, 255], [177, 127, 227, 255]];
    assert_eq!(shown.photograph().as_raw(), expected.as_flattened());
}

#[test]
fn a_turned_photograph_is_set_upright() {
    let picture = RgbImage::from_fn(32, 16, |x, _| Rgb(if x < 16 { [255, 0, 0] } else { [0, 0, 255] }));
    // TIFF, little endian, one entry: orientation (0x112), short, 1 value: 6, turn right to see.
    let exif = [73, 73, 42, 0, 8, 0, 0, 0, 1, 0, 0x12, 1, 3, 0, 1, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0];
    let turned = Picture::decode(&jpeg(&picture, Some(exif.to_vec()))).unwrap();
    assert_eq!((turned.width(), turned.height()), (16, 32));
    let (_, shown) = pictured(&Settings { n: 2, patch: 1, ..Settings::default() }, &turned);
    let pixels: Vec<[u8; 4]> = shown.photograph().pixels().map(|pixel| pixel.0).collect();
    assert!(pixels[0][0] > 200 && pixels[0][2] < 60, "the left half is now on top: {pixels:?}");
}

#[test]
fn large_pictures_are_scaled_down_when_opened() {
    let picture = Picture::decode(&png(&RgbaImage::from_pixel(5000, 50, Rgba([1, 2, 3, 255])))).unwrap();
    assert_eq!((picture.width(), picture.height()), (2048, 20));
}

#[test]
fn hostile_files_give_a_sentence() {
    for bytes in [&b""[..], b"x", b"GIF89a\x01\x00\x01\x00", b"not a picture at all", b"RIFF\0\0\0\0WEBP"] {
        assert_eq!(Picture::decode(bytes), Err(InputError::NotAPicture));
    }
    for bytes in [claiming_png(100_000, 100_000), claiming_png(20_000, 1), claiming_jpeg(65_500, 65_500)] {
        assert!(matches!(Picture::decode(&bytes), Err(InputError::TooLarge { .. })));
    }
    let claimed = Picture::decode(&claiming_png(16_000, 16_000)).unwrap_err();
    assert_eq!(claimed, InputError::TooLarge { width: 16_000, height: 16_000 });
    assert!(claimed.to_string().contains("16000 x 16000 pixels, allowed are 50 million in all and 16384 a side"));
    for bytes in [claiming_png(0, 4), claiming_png(4, 0), claiming_jpeg(0, 8), claiming_png(3000, 3000)] {
        assert!(matches!(Picture::decode(&bytes), Err(InputError::Damaged(_))), "{:?}", Picture::decode(&bytes));
    }
}

#[test]
fn damaged_files_never_panic() {
    let speckled = RgbImage::from_fn(24, 16, |x, y| Rgb([x * 10, y * 15, x * y].map(|c| c as u8)));
    let opaque = RgbaImage::from_fn(24, 16, |x, y| Rgba([x as u8, y as u8, 7, 200]));
    for whole in [jpeg(&speckled, None), png(&opaque)] {
        assert!(Picture::decode(&whole).is_ok());
        for length in 0..whole.len() {
            let _ = Picture::decode(&whole[..length]);
        }
        for trial in 0..3000 {
            let mut bytes = whole.clone();
            for hit in 0..1 + trial % 4 {
                let word = bits(5, Stream::Noise, trial * 8 + hit);
                let at = (word >> 8) as usize % bytes.len();
                bytes[at] = word as u8;
            }
            let _ = Picture::decode(&bytes);
        }
    }
    assert!(matches!(Picture::decode(&png(&opaque)[..60]), Err(InputError::Damaged(_))));
}

#[test]
fn clusters_are_as_tight_as_asked() {
    for (tightness, wanted) in [(0.0, 0.0), (0.5, 0.5), (0.85, 0.9698), (1.0, 1.0)] {
        let settings = Settings { n: 2000, clusters: 8, d: 64, tightness, ..clusters() };
        let (input, shown) = pointed(&settings);
        let v = &input.problem.v;
        let mean_cosine = |same: bool| {
            let pairs = (0..2000u32)
                .flat_map(|i| (1..4).map(move |step| (i, (i + 577 * step) % 2000)))
                .filter(|(i, j)| (shown.cluster[*i as usize] == shown.cluster[*j as usize]) == same);
            let cosines: Vec<f64> = pairs.map(|(i, j)| dot(row(v, 64, i), row(v, 64, j))).collect();
            cosines.iter().sum::<f64>() / cosines.len() as f64
        };
        // Inside a cluster t^2 / (t^2 + (1 - t)^2), up to the random angle of centre and scatter.
        assert!((mean_cosine(true) - wanted).abs() < 0.03, "{tightness}: {}", mean_cosine(true));
        // The 28 cosines between centres have standard deviation 1/8 each.
        assert!(mean_cosine(false).abs() < 4.0 / 8.0 / 28f64.sqrt());
    }
}

#[test]
fn clusters_are_filled_evenly() {
    let (_, shown) = pointed(&Settings { n: 8000, clusters: 16, d: 3, ..clusters() });
    for cluster in 0..16 {
        let size = shown.cluster.iter().filter(|c| **c == cluster).count() as f64;
        assert!((size - 500.0).abs() < 5.0 * (500f64 * 15.0 / 16.0).sqrt(), "{cluster}: {size}");
    }
}

#[test]
fn arrangements_are_what_they_say() {
    let arranged = |arrangement| pointed(&Settings { n: 100, clusters: 7, d: 16, arrangement, ..clusters() });
    let same = |input: &Input, i, j| row(&input.problem.v, 16, i) == row(&input.problem.v, 16, j);
    let (identical, _) = arranged(Arrangement::Identical);
    assert!((1..100).all(|i| same(&identical, 0, i)));
    let (repeated, shown) = arranged(Arrangement::Repeated);
    assert!((0..100).all(|i| (0..100).all(|j| same(&repeated, i, j) == (i % 7 == j % 7))));
    assert!((0..100).all(|i| shown.cluster[i] == i as u32 % 7));
    let (isotropic, shown) = arranged(Arrangement::Isotropic);
    assert!((0..100).all(|i| (0..i).all(|j| !same(&isotropic, i, j))));
    assert!(shown.cluster.iter().all(|cluster| *cluster == 0));
}

#[test]
fn points_are_drawn_on_the_sphere_and_means_inside() {
    for d in [1, 2, 3, 64] {
        let (input, shown) = pointed(&Settings { n: 200, d, arrangement: Arrangement::Isotropic, ..clusters() });
        assert!(shown.display.iter().all(|place| (dot(place, place) - 1.0).abs() < 1e-5));
        let half: Vec<f32> = row(&input.problem.v, d, 5).iter().map(|x| x * 0.5).collect();
        let place = shown.place(&half);
        assert!(place.iter().zip(shown.display[5]).all(|(a, b)| (a - b * 0.5).abs() < 1e-6));
        assert_eq!(shown.place(&vec![0.0; d as usize]), [0.0; 3]);
    }
    let (input, shown) = pointed(&Settings { n: 10, d: 2, ..clusters() });
    let point = row(&input.problem.v, 2, 4);
    assert!((f64::from(shown.display[4][0]) - f64::from(point[0])).abs() < 1e-6);
    assert_eq!(shown.display[4][2], 0.0);
}

#[test]
fn the_task_is_0w0w() {
    // The symbols are those of the reference.
    let (_, shown) = duplicated(&Settings { n: 21, seed: 7, ..duplication() });
    let word = [7, 119, 66, 116, 105, 93, 16, 106, 59];
    assert_eq!(shown.symbols, [&[0][..], &word, &[0], &word, &[15]].concat());
    assert_eq!((shown.period(), shown.asked()), (10, 10..19));
    assert_eq!((shown.next(10), shown.next(18), shown.next(20)), (7, 59, 0));
    for n in [4, 5, 6, 7, 64, 257] {
        let (_, shown) = duplicated(&Settings { n, ..duplication() });
        assert_eq!((shown.symbols.len() as u32, shown.asked().len() as u32), (n, n / 2 - 1));
        assert!(shown.asked().all(|i| (1..128).contains(&shown.next(i)) && shown.next(i) == shown.next(i - n / 2)));
    }
    for n in [1, 3] {
        assert_eq!(now(build(&Settings { n, ..duplication() }, None)), Err(InputError::TooShort(n)));
    }
}

#[test]
fn what_host_memory_cannot_hold_is_refused_before_it_is_made() {
    let picture = small_picture();
    let sizes = |input, heads, d| Settings { input, n: 262_144, heads, d, ..Settings::default() };
    // q and k have a row a position and head, q of points alone: 4 bytes a number, and v besides.
    let largest = [
        (sizes(InputKind::Picture, 16, 128), 2 * (1 << 31) + 262_144 * 48 * 4),
        (sizes(InputKind::Clusters, 16, 128), (1 << 31) + 2 * (1 << 27)),
        (sizes(InputKind::Duplication, 16, 128), 2 * (1 << 31) + 262_144 * 32 * 4),
        (sizes(InputKind::Clusters, 14, 64), (1 << 30)),
        (sizes(InputKind::Clusters, 15, 64), 17 * (1 << 26)),
    ];
    for (settings, bytes) in largest {
        assert_eq!(dims(&settings).bytes(), bytes, "{settings:?}");
        if bytes == 1 << 30 {
            assert_eq!(fits(&settings), Ok(()), "just as much is held");
            continue;
        }
        let Err(InputError::Refused(refusal)) = now(build(&settings, Some(&picture))) else { panic!("{settings:?}") };
        assert_eq!((refusal.needed, refusal.allowed, refusal.limit), (bytes, 1 << 30, Limit::Host));
    }
    let long = Settings { n: 65_536, heads: 16, d: 64, ..Settings::default() };
    for input in [InputKind::Picture, InputKind::Clusters, InputKind::Duplication] {
        assert_eq!(fits(&Settings { input, ..long.clone() }), Ok(()));
    }
    // Small q, k and v whose values, and so the outputs of every head, are large.
    let refused = fits(&Settings { patch: 6, ..sizes(InputKind::Picture, 16, 4) }).expect_err("too much");
    assert_eq!((refused.buffer, refused.needed), ("outputs", 16 * 262_144 * 108 * 4));
}

/// Exact attention of one head in float64; rows without a key are 0 and [`EMPTY`].
fn attend(input: &Input, head: u32, rule: &Semantics) -> (Vec<f32>, Vec<f32>) {
    let (p, d) = (&input.problem, input.problem.dims);
    let (mut out, mut lse) = (Vec::new(), Vec::new());
    for i in 0..d.n_q {
        let seen = |j: &u32| !(rule.causal && *j > i || rule.self_rule == SelfRule::Exclude && *j == i);
        let score = |j: u32| dot(row(&p.q, d.d, head * d.n_q + i), row(&p.k, d.d, head * d.n_kv + j));
        let scores: Vec<(u32, f64)> = (0..d.n_kv).filter(seen).map(|j| (j, score(j) / f64::from(d.d).sqrt())).collect();
        let top = scores.iter().map(|(_, s)| *s).fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = scores.iter().map(|(_, s)| (s - top).exp()).sum();
        let mut sum = vec![0.0; d.d_v as usize];
        for (j, s) in &scores {
            let weight = (s - top).exp() / total;
            sum.iter_mut().zip(row(&p.v, d.d_v, *j)).for_each(|(sum, v)| *sum += weight * f64::from(*v));
        }
        out.extend(sum.iter().map(|x| *x as f32));
        lse.push(if scores.is_empty() { EMPTY } else { (top + total.ln()) as f32 });
    }
    (out, lse)
}

#[test]
fn exact_attention_solves_the_task_and_never_by_looking_at_itself() {
    for n in [4, 5, 64, 257, 600] {
        for causal in [false, true] {
            let mut settings = Settings { n, noise: 0.0, heads: 2, ..duplication() };
            settings.semantics.causal = causal;
            let rule = settings.effective_semantics();
            assert_eq!((rule.self_rule, rule.causal), (SelfRule::Exclude, causal));
            let (input, shown) = duplicated(&settings);
            for head in 0..2 {
                let (out, lse) = attend(&input, head, &rule);
                assert_eq!(shown.accuracy(&out, Some(&lse)), 1.0, "n = {n}, causal {causal}, head {head}");
                // The answer was read off the first half: without its values nothing is left to read.
                let mut blind = input.clone();
                blind.problem.v[..(n / 2 * 32) as usize].fill(0.0);
                let (out, lse) = attend(&blind, head, &rule);
                assert!(n < 64 || shown.accuracy(&out, Some(&lse)) < 0.2, "n = {n}");
            }
        }
    }
    for input in [InputKind::Picture, InputKind::Clusters] {
        let settings = Settings { input, ..Settings::default() };
        assert_eq!(settings.effective_semantics(), settings.semantics);
    }
}

#[test]
fn noise_makes_the_task_harder() {
    let accuracy = |noise| {
        let settings = Settings { n: 600, noise, ..duplication() };
        let (input, shown) = duplicated(&settings);
        shown.accuracy(&attend(&input, 0, &settings.effective_semantics()).0, None)
    };
    assert_eq!(accuracy(Settings::default().noise), 1.0);
    assert!(accuracy(1.0) < 0.9);
    assert!(accuracy(4.0) < 0.1);
}

#[test]
fn a_position_that_saw_nothing_is_wrong() {
    let (input, shown) = duplicated(&Settings { n: 64, ..duplication() });
    let mut out = input.problem.v.clone();
    assert_eq!(shown.accuracy(&out, None), 1.0);
    let mut lse = vec![0.0; 64];
    lse[40] = EMPTY;
    lse[5] = EMPTY;
    assert_eq!(shown.accuracy(&out, Some(&lse)), 30.0 / 31.0);
    out[33 * 32..35 * 32].fill(0.0);
    assert_eq!(shown.accuracy(&out, Some(&lse)), 28.0 / 31.0);
    out[0..32 * 32].fill(0.0);
    assert_eq!(shown.accuracy(&out, None), 29.0 / 31.0);
}

#[test]
fn every_choice_of_the_settings_can_be_built() {
    for arrangement in Arrangement::ALL {
        pointed(&Settings { n: 33, heads: 2, d: 1, arrangement: arrangement.0, ..clusters() });
    }
    for (d, heads, patch) in [(1, 1, 1), (128, 16, 6), (3, 2, 5)] {
        pictured(&Settings { n: 33, d, heads, patch, ..Settings::default() }, &sample(Sample::Cat));
        duplicated(&Settings { n: 33, d, heads, ..duplication() });
    }
}

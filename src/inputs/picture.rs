//! A photograph cut into patches: the output of attention is again a picture (non-local means).
//!
//! A token is a patch. v are its pixels, sRGB values from 0 to 1. q and k are the pixels minus the
//! mean patch of the picture, through a seeded projection that each head has of its own, plus a
//! smooth feature of the place.

use super::rows::{Rows, add_scaled, index, normals, pause};
use super::{Input, InputError, Shown};
use crate::random::{Stream, uniform};
use crate::settings::Settings;
use image::imageops::{FilterType, resize};
use image::{DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits, Rgb, RgbImage, Rgba, RgbaImage};
use std::io::Cursor;

/// Largest width or height of a file that is decoded.
pub const MAX_SIDE: u32 = 16_384;
/// Most pixels of a file that is decoded.
pub const MAX_PIXELS: u64 = 50_000_000;
/// Most bytes that a decoder may hold at once.
const MAX_BYTES: u64 = 400 << 20;
/// Larger pictures are scaled down once, when they are opened.
const KEPT_SIDE: u32 = 2048;
/// Longest side of a resampled picture: the texture that every WebGPU device can show.
const TEXTURE_SIDE: u32 = 8192;
/// Width of the Gaussian kernel of places, as a share of the picture's longer side.
const PLACE_WIDTH: f64 = 0.15;

/// An opened photograph: sRGB, 8 bits a channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    pixels: RgbImage,
}

impl Picture {
    /// Decodes PNG or JPEG, turns it as its EXIF orientation says, and lays it over white.
    ///
    /// # Errors
    /// When the bytes are no picture, damaged, or too large; sizes are checked before decoding.
    pub fn decode(bytes: &[u8]) -> Result<Self, InputError> {
        let format = image::guess_format(bytes).map_err(|_| InputError::NotAPicture)?;
        if !matches!(format, ImageFormat::Png | ImageFormat::Jpeg) {
            return Err(InputError::NotAPicture);
        }
        let damaged = |error: ImageError| InputError::Damaged(error.to_string());
        let reader = || ImageReader::with_format(Cursor::new(bytes), format);
        let (width, height) = reader().into_dimensions().map_err(damaged)?;
        if width.min(height) == 0 {
            return Err(InputError::Damaged(format!("it has {width} x {height} pixels")));
        }
        if width.max(height) > MAX_SIDE || u64::from(width) * u64::from(height) > MAX_PIXELS {
            return Err(InputError::TooLarge { width, height });
        }
        let mut limits = Limits::no_limits();
        limits.max_alloc = Some(MAX_BYTES);
        let mut reader = reader();
        reader.limits(limits.clone());
        let mut decoder = reader.into_decoder().map_err(damaged)?;
        limits.reserve(decoder.total_bytes()).map_err(|_| InputError::TooLarge { width, height })?;
        let orientation = decoder.orientation().map_err(damaged)?;
        let mut decoded = DynamicImage::from_decoder(decoder).map_err(damaged)?;
        decoded.apply_orientation(orientation);
        if decoded.width().max(decoded.height()) > KEPT_SIDE {
            decoded = decoded.thumbnail(KEPT_SIDE, KEPT_SIDE);
        }
        Ok(Self { pixels: over_white(&decoded) })
    }

    /// Takes sRGB pixels as they are.
    pub fn new(pixels: RgbImage) -> Self {
        Self { pixels }
    }

    pub fn width(&self) -> u32 {
        self.pixels.width()
    }

    pub fn height(&self) -> u32 {
        self.pixels.height()
    }
}

fn over_white(picture: &DynamicImage) -> RgbImage {
    if !picture.color().has_alpha() {
        return picture.to_rgb8();
    }
    let rgba = picture.to_rgba8();
    RgbImage::from_fn(rgba.width(), rgba.height(), |x, y| {
        let Rgba([r, g, b, alpha]) = *rgba.get_pixel(x, y);
        let mix = |c: u8| ((u32::from(c) * u32::from(alpha) + 255 * (255 - u32::from(alpha)) + 127) / 255) as u8;
        Rgb([mix(r), mix(g), mix(b)])
    })
}

/// Tokens as patches of a resampled photograph, row by row; the last row may be incomplete.
#[derive(Clone, Debug, PartialEq)]
pub struct PictureInput {
    pub n: u32,
    pub rows: u32,
    pub cols: u32,
    /// Side of a patch in pixels.
    pub patch: u32,
    pixels: RgbImage,
}

impl PictureInput {
    /// Resamples a picture to `rows x cols` patches that cover all of it; a picture that is wider
    /// than high gets more columns than rows.
    fn new(picture: &Picture, n: u32, patch: u32) -> Self {
        let aspect = f64::from(picture.width().max(1)) / f64::from(picture.height().max(1));
        let most = TEXTURE_SIDE / patch;
        let cols = ((f64::from(n) * aspect).sqrt().round() as u32).clamp(n.div_ceil(most), most.min(n));
        let rows = n.div_ceil(cols);
        // Catmull and Rom's filter is a polynomial, so that no platform's own functions come in.
        let pixels = resize(&picture.pixels, cols * patch, rows * patch, FilterType::CatmullRom);
        Self { n, rows, cols, patch, pixels }
    }

    /// Row and column of a token's patch.
    pub fn place(&self, token: u32) -> (u32, u32) {
        (token / self.cols, token % self.cols)
    }

    /// The token whose patch holds a pixel of the photograph; `None` outside and where the last row
    /// ends.
    pub fn token_at(&self, x: u32, y: u32) -> Option<u32> {
        let (row, col) = (y / self.patch, x / self.patch);
        (row < self.rows && col < self.cols).then(|| row * self.cols + col).filter(|token| *token < self.n)
    }

    /// The resampled photograph, transparent where the last row has no tokens.
    pub fn photograph(&self) -> RgbaImage {
        self.raster(|x, y, _, _| self.pixels.get_pixel(x, y).0)
    }

    /// Turns an output of attention, `[n, d_v]`, back into a picture, transparent where the last
    /// row has no tokens.
    pub fn assemble(&self, out: &[f32]) -> RgbaImage {
        let d_v = (self.patch * self.patch * 3) as usize;
        self.raster(|_, _, token, at| {
            let start = token as usize * d_v + at as usize * 3;
            [0, 1, 2].map(|c| (out[start + c].clamp(0.0, 1.0) * 255.0).round() as u8)
        })
    }

    /// A picture from a colour for each x, y, token and number of the pixel in its patch.
    fn raster(&self, colour: impl Fn(u32, u32, u32, u32) -> [u8; 3]) -> RgbaImage {
        let (width, height) = self.pixels.dimensions();
        RgbaImage::from_fn(width, height, |x, y| match self.token_at(x, y) {
            Some(token) => {
                let [r, g, b] = colour(x, y, token, y % self.patch * self.patch + x % self.patch);
                Rgba([r, g, b, 255])
            }
            None => Rgba([0; 4]),
        })
    }

    /// Appends the pixels of a token's patch, row by row, each red, green, blue from 0 to 1.
    fn append_patch(&self, token: u32, out: &mut Vec<f32>) {
        let (row, col) = self.place(token);
        for y in 0..self.patch {
            for x in 0..self.patch {
                let pixel = self.pixels.get_pixel(col * self.patch + x, row * self.patch + y);
                out.extend(pixel.0.map(|c| f32::from(c) / 255.0));
            }
        }
    }
}

/// The picture as tokens; heads differ in their projections, v is the same for all.
pub(super) async fn build(settings: &Settings, picture: &Picture) -> Input {
    let shown = PictureInput::new(picture, settings.n, settings.patch);
    let (n, d, width) = (settings.n, settings.d as usize, super::dims(settings).d_v as usize);
    let mut v = Vec::with_capacity(n as usize * width);
    for token in 0..n {
        pause(token).await;
        shown.append_patch(token, &mut v);
    }

    let mean = mean_row(&v, width);
    let centred = |token: u32| v[token as usize * width..][..width].iter().zip(&mean).map(|(x, mean)| x - mean);
    let square: f64 = (0..n).flat_map(centred).map(|x| f64::from(x) * f64::from(x)).sum();
    let typical = (square / f64::from(n)).sqrt() as f32;
    let contrast = if typical > 0.0 { 1.0 / typical } else { 0.0 };

    let mut rows = Rows::new(settings.sharpness, settings.heads as usize * n as usize * d);
    let mut direction = vec![0.0; d];
    for head in 0..settings.heads {
        let projection: Vec<f32> =
            normals(settings.seed, Stream::QueryProjection, index(u64::from(head) * 2, 0), width * d).collect();
        let weight = contrast / (d as f32).sqrt();
        let places = Places::new(settings, head, &shown);
        for token in 0..n {
            pause(token).await;
            direction.fill(0.0);
            for (x, column) in centred(token).zip(projection.chunks_exact(d)) {
                add_scaled(&mut direction, x * weight, column);
            }
            places.add(shown.place(token), &mut direction);
            rows.push(&direction);
        }
    }
    Input { problem: super::problem(settings, rows, v), shown: Shown::Picture(shown) }
}

fn mean_row(rows: &[f32], width: usize) -> Vec<f32> {
    let mut sums = vec![0.0; width];
    for row in rows.chunks_exact(width) {
        sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += f64::from(*x));
    }
    let count = (rows.len() / width) as f64;
    sums.iter().map(|sum| (sum / count) as f32).collect()
}

/// Random Fourier features of a patch's place (Rahimi and Recht, 2007): the dot product of two is
/// near `exp(-distance^2 / 2)`, distance in units of [`PLACE_WIDTH`].
///
/// Feature i is `sqrt(2 / d) cos(a_i row + b_i col + c_i)`, from tables of the two angles' sine and
/// cosine, since only rows and columns are few.
struct Places {
    d: usize,
    rows: Vec<[f32; 2]>,
    cols: Vec<[f32; 2]>,
    strength: f32,
}

impl Places {
    fn new(settings: &Settings, head: u32, shown: &PictureInput) -> Self {
        let d = settings.d as usize;
        let unit = 1.0 / (PLACE_WIDTH * f64::from(shown.rows.max(shown.cols)));
        let block = u64::from(head) * 2 + 1;
        let frequencies: Vec<f64> =
            normals(settings.seed, Stream::QueryProjection, index(block, 0), 2 * d).map(f64::from).collect();
        let phase = |i: usize| {
            uniform(settings.seed, Stream::QueryProjection, index(block, 2 * d as u64 + i as u64))
                * std::f64::consts::TAU
        };
        let table = |count: u32, angle: &dyn Fn(f64, usize) -> f64| {
            let entry = |at: u32, i: usize| {
                let angle = angle(f64::from(at) * unit, i);
                [libm::cos(angle) as f32, libm::sin(angle) as f32]
            };
            (0..count).flat_map(|at| (0..d).map(move |i| (at, i))).map(|(at, i)| entry(at, i)).collect()
        };
        Self {
            d,
            rows: table(shown.rows, &|at, i| at * frequencies[i] + phase(i)),
            cols: table(shown.cols, &|at, i| at * frequencies[d + i]),
            strength: settings.position * (2.0 / d as f32).sqrt(),
        }
    }

    fn add(&self, (row, col): (u32, u32), to: &mut [f32]) {
        let rows = &self.rows[row as usize * self.d..];
        let cols = &self.cols[col as usize * self.d..];
        for (to, ([row_cos, row_sin], [col_cos, col_sin])) in to.iter_mut().zip(rows.iter().zip(cols)) {
            *to += self.strength * (row_cos * col_cos - row_sin * col_sin);
        }
    }
}

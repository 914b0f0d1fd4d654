//! The manifest of a folder of golden data, and its tensors. Nothing in the folder is trusted: what
//! does not fit is an error in words.

use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Most numbers that one array may have: a folder of test data, not a model.
const MAX_ELEMENTS: u64 = 1 << 26;

#[derive(Deserialize)]
pub struct Manifest {
    pub format: String,
    pub cases: Vec<Case>,
}

#[derive(Deserialize)]
pub struct Case {
    pub name: String,
    pub group: String,
    pub file: String,
    #[serde(default)]
    pub params: BTreeMap<String, Value>,
    #[serde(default)]
    pub flags: BTreeMap<String, Value>,
    pub arrays: BTreeMap<String, ArraySpec>,
    #[serde(default)]
    pub tolerance: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
pub struct ArraySpec {
    pub dtype: String,
    pub shape: Vec<u64>,
}

/// Reads a manifest.
///
/// # Errors
/// A sentence when the text is no manifest of a known format.
pub fn parse(text: &str) -> Result<Manifest, String> {
    let manifest: Manifest =
        serde_json::from_str(text).map_err(|error| format!("manifest.json cannot be read: {error}"))?;
    if manifest.format != "golden-attention/1" {
        return Err(format!(
            "manifest.json has the format \"{}\"; this program reads \"golden-attention/1\"",
            manifest.format
        ));
    }
    Ok(manifest)
}

impl Case {
    /// A whole number of `params` between the bounds.
    ///
    /// # Errors
    /// A sentence when it is missing or out of bounds.
    pub fn param(&self, name: &str, low: u32, high: u32) -> Result<u32, String> {
        let value = self.params.get(name).ok_or_else(|| format!("the manifest gives no params.{name}"))?;
        value
            .as_u64()
            .and_then(|value| u32::try_from(value).ok())
            .filter(|value| (low..=high).contains(value))
            .ok_or_else(|| format!("params.{name} is {value}; allowed is {low} to {high}"))
    }

    /// A switch of `flags`; missing means off.
    ///
    /// # Errors
    /// A sentence when it is neither true nor false.
    pub fn switch(&self, name: &str) -> Result<bool, String> {
        match self.flags.get(name) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(on)) => Ok(*on),
            Some(other) => Err(format!("flags.{name} is {other}; allowed is true or false")),
        }
    }

    /// A number of `flags`; missing and null mean none.
    ///
    /// # Errors
    /// A sentence when it is no finite number.
    pub fn number(&self, name: &str) -> Result<Option<f64>, String> {
        match self.flags.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_f64().filter(|value| value.is_finite()) {
                Some(value) => Ok(Some(value)),
                None => Err(format!("flags.{name} is {value}; allowed is a finite number or null")),
            },
        }
    }

    /// A word of `flags`; missing and null mean none.
    ///
    /// # Errors
    /// A sentence when it is no text.
    pub fn word(&self, name: &str) -> Result<Option<&str>, String> {
        match self.flags.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(word)) => Ok(Some(word)),
            Some(other) => Err(format!("flags.{name} is {other}; allowed is a word or null")),
        }
    }

    /// The tolerance of floats, when the manifest gives one; `key` is an array, or a name of several.
    ///
    /// # Errors
    /// A sentence when it does not give numbers, or a negative one.
    pub fn tolerance<'a>(&self, key: &'a str) -> Result<Option<Tolerance<'a>>, String> {
        let map = match self.tolerance.get(key) {
            None => return Ok(None),
            Some(Value::Object(map)) => map,
            Some(other) => return Err(format!("tolerance.{key} is {other}; floats need an object with atol and rtol")),
        };
        let read = |name: &str| match map.get(name) {
            None => Ok(None),
            Some(value) => match value.as_f64().filter(|value| value.is_finite() && *value >= 0.0) {
                Some(value) => Ok(Some(value)),
                None => Err(format!("tolerance.{key}.{name} is {value}; allowed is a number from 0")),
            },
        };
        Ok(Some(Tolerance {
            key,
            absolute: read("atol")?.unwrap_or(0.0),
            relative: read("rtol")?.unwrap_or(0.0),
            self_only: read("self_only_rtol")?,
        }))
    }

    /// Refuses a tolerance of integers that is not "exact", with what it may say behind it: they are compared so.
    ///
    /// # Errors
    /// A sentence when there is one that says another thing.
    pub fn exactly(&self, array: &str) -> Result<(), String> {
        match self.tolerance.get(array) {
            None => Ok(()),
            Some(Value::String(words)) if words.split(' ').next() == Some("exact") => Ok(()),
            Some(other) => Err(format!("tolerance.{array} is {other}; integers are compared as \"exact\"")),
        }
    }
}

/// `|a - b| <= absolute + relative |b|`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance<'a> {
    /// Its name in the manifest.
    pub key: &'a str,
    pub absolute: f64,
    pub relative: f64,
    /// Relative tolerance of rows that see only themselves.
    pub self_only: Option<f64>,
}

/// The arrays of one case.
pub struct Tensors {
    arrays: BTreeMap<String, (Vec<u32>, Numbers)>,
}

enum Numbers {
    F32(Vec<f32>),
    I32(Vec<i32>),
}

impl Tensors {
    /// Reads a .safetensors file and holds it against the manifest.
    ///
    /// # Errors
    /// A sentence when the file is damaged or does not have exactly the arrays of the manifest.
    pub fn read(case: &Case, bytes: &[u8]) -> Result<Self, String> {
        let file = safetensors::SafeTensors::deserialize(bytes)
            .map_err(|error| format!("{} cannot be read: {error}", case.file))?;
        let mut arrays = BTreeMap::new();
        for (name, spec) in &case.arrays {
            let view =
                file.tensor(name).map_err(|_| format!("{} has no array \"{name}\" of the manifest", case.file))?;
            let shape: Vec<u64> = view.shape().iter().map(|size| *size as u64).collect();
            let dtype = format!("{:?}", view.dtype());
            if shape != spec.shape || dtype != spec.dtype {
                return Err(format!(
                    "{}: \"{name}\" is {dtype} {shape:?}, the manifest says {} {:?}",
                    case.file, spec.dtype, spec.shape
                ));
            }
            let count =
                shape.iter().try_fold(1u64, |all, size| all.checked_mul(*size)).filter(|count| *count <= MAX_ELEMENTS);
            if count.is_none() {
                return Err(format!(
                    "{}: \"{name}\" of shape {shape:?} has more than {MAX_ELEMENTS} numbers",
                    case.file
                ));
            }
            let numbers = match view.dtype() {
                safetensors::Dtype::F32 => Numbers::F32(bytemuck::pod_collect_to_vec(view.data())),
                safetensors::Dtype::I32 => Numbers::I32(bytemuck::pod_collect_to_vec(view.data())),
                _ => return Err(format!("{}: \"{name}\" is {dtype}; F32 and I32 can be read", case.file)),
            };
            if let Numbers::F32(values) = &numbers
                && let Some(at) = values.iter().position(|value| !value.is_finite())
            {
                let held = values[at];
                return Err(format!("{}: \"{name}\" holds {held} at {at}; only finite numbers can be run", case.file));
            }
            arrays.insert(name.clone(), (shape.into_iter().map(|size| size as u32).collect(), numbers));
        }
        Ok(Self { arrays })
    }

    pub fn has(&self, name: &str) -> bool {
        self.arrays.contains_key(name)
    }

    /// The first size of an array.
    ///
    /// # Errors
    /// A sentence when there is no such array.
    pub fn leading(&self, name: &str) -> Result<u32, String> {
        let (shape, _) = self.arrays.get(name).ok_or_else(|| format!("the case has no array \"{name}\""))?;
        shape.first().copied().ok_or_else(|| format!("\"{name}\" is a single number, not an array"))
    }

    /// An array of floats of exactly this shape.
    ///
    /// # Errors
    /// A sentence when there is none.
    pub fn floats(&self, name: &str, shape: &[u32]) -> Result<&[f32], String> {
        match self.arrays.get(name) {
            Some((held, Numbers::F32(values))) if held == shape => Ok(values),
            Some((held, Numbers::F32(_))) => {
                Err(format!("\"{name}\" has the shape {held:?}, the parameters ask for {shape:?}"))
            }
            Some(_) => Err(format!("\"{name}\" holds integers, not floats")),
            None => Err(format!("the case has no array \"{name}\"")),
        }
    }

    /// An array of non-negative integers below `end` of exactly this shape.
    ///
    /// # Errors
    /// A sentence when there is none.
    pub fn integers(&self, name: &str, shape: &[u32], end: u32) -> Result<Vec<u32>, String> {
        match self.arrays.get(name) {
            Some((held, Numbers::I32(values))) if held == shape => values
                .iter()
                .map(|value| u32::try_from(*value).ok().filter(|value| *value < end))
                .collect::<Option<_>>()
                .ok_or_else(|| format!("\"{name}\" holds numbers outside 0 to {}", end - 1)),
            Some((held, Numbers::I32(_))) => {
                Err(format!("\"{name}\" has the shape {held:?}, the parameters ask for {shape:?}"))
            }
            Some(_) => Err(format!("\"{name}\" holds floats, not integers")),
            None => Err(format!("the case has no array \"{name}\"")),
        }
    }
}

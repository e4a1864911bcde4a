//! The header of a GGUF file, version 2 or 3: metadata, and where each tensor lies.
//!
//! Format: <https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>.
//!
//! candle has a reader too, and it is the oracle of the tests. This one borrows the strings of
//! the map (a Qwen vocabulary and its merges are 300,000 of them), checks every range before a
//! weight is touched, and refuses what candle's panics on or lets through: an alignment of zero,
//! shapes whose product overflows, names that appear twice, strings that are not UTF-8.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use candle_core::quantized::GgmlDType;

use crate::InferError;

const MAGIC: &[u8] = b"GGUF";
const DEFAULT_ALIGNMENT: u64 = 32;
const MAX_DIMENSIONS: u32 = 4;
/// The types of weights that are read.
pub(crate) const SUPPORTED_TYPES: &str =
    "F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K";
/// Types of metadata values, as numbered in the format.
const BOOL: u32 = 7;
const STRING: u32 = 8;
const ARRAY: u32 = 9;

/// One metadata value, borrowed from the file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value<'a> {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Bool(bool),
    Text(&'a str),
    Texts(Vec<&'a str>),
    Numbers(Numbers<'a>),
}

/// An array of plain values, decoded when it is read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Numbers<'a> {
    kind: u32,
    size: usize,
    bytes: &'a [u8],
}

impl<'a> Numbers<'a> {
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() / self.size
    }

    /// The values; a truth value that is none counts as true.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Value<'a>> {
        let kind = self.kind;
        self.bytes
            .chunks_exact(self.size)
            .map(move |bytes| scalar(kind, bytes).unwrap_or(Value::Bool(true)))
    }
}

/// Bytes of a plain value in the file.
const fn scalar_size(kind: u32) -> Option<usize> {
    Some(match kind {
        0 | 1 | BOOL => 1,
        2 | 3 => 2,
        4..=6 => 4,
        10..=12 => 8,
        _ => return None,
    })
}

/// The plain value in `bytes`, which are as many as its type has.
fn scalar(kind: u32, bytes: &[u8]) -> Option<Value<'static>> {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let unsigned = u64::from_le_bytes(wide);
    let unused_bits = u64::BITS - 8 * bytes.len() as u32;
    // The sign is in the highest bit that is used.
    let signed = (unsigned << unused_bits).cast_signed() >> unused_bits;
    Some(match kind {
        0 | 2 | 4 | 10 => Value::Unsigned(unsigned),
        1 | 3 | 5 | 11 => Value::Signed(signed),
        6 => Value::Float(f32::from_bits(unsigned as u32).into()),
        12 => Value::Float(f64::from_bits(unsigned)),
        BOOL if unsigned <= 1 => Value::Bool(unsigned == 1),
        _ => return None,
    })
}

/// Where one tensor lies in the file.
#[derive(Debug, Clone)]
pub(crate) struct TensorInfo {
    /// Row-major: the format's order reversed. Every dimension is at least 1.
    pub(crate) shape: Vec<u64>,
    pub(crate) dtype: GgmlDType,
    /// Position in the file, in bytes, checked to be aligned and inside.
    pub(crate) offset: usize,
    /// Size in bytes.
    pub(crate) bytes: usize,
}

/// A parsed and checked header.
#[derive(Debug)]
pub(crate) struct Gguf<'a> {
    path: PathBuf,
    pub(crate) metadata: BTreeMap<&'a str, Value<'a>>,
    pub(crate) tensors: BTreeMap<&'a str, TensorInfo>,
}

impl<'a> Gguf<'a> {
    /// Parses the header. Never allocates more than a small multiple of `bytes.len()`.
    pub(crate) fn parse(path: &Path, bytes: &'a [u8]) -> Result<Self, InferError> {
        let mut cursor = Cursor { path, bytes, offset: 0 };
        let magic = cursor.take(4, "magic").unwrap_or_default();
        if magic != MAGIC {
            let got = bytes.iter().copied().take(4).collect();
            return Err(InferError::NotAModel { path: path.to_owned(), got });
        }
        let version = cursor.u32("version")?;
        if !(2..=3).contains(&version) {
            return Err(InferError::GgufVersion { path: path.to_owned(), got: version });
        }
        let tensor_count = cursor.u64("tensor count")?;
        let metadata_count = cursor.u64("metadata count")?;

        let mut metadata = BTreeMap::new();
        for _ in 0..metadata_count {
            let key = cursor.text("metadata key")?;
            let kind = cursor.u32("metadata type")?;
            let value = cursor.value(key, kind)?;
            if metadata.insert(key, value).is_some() {
                return Err(InferError::Duplicate { path: path.to_owned(), name: shorten(key) });
            }
        }

        let mut raw = Vec::new();
        for _ in 0..tensor_count {
            raw.push(cursor.tensor()?);
        }
        let alignment = match metadata.get("general.alignment") {
            None => DEFAULT_ALIGNMENT,
            // The views below need an alignment of 8 at most.
            Some(&Value::Unsigned(a)) if a.is_power_of_two() && a >= 8 => a,
            Some(other) => {
                return Err(InferError::KeyValue {
                    path: path.to_owned(),
                    key: "general.alignment".to_owned(),
                    expected: "a power of two, at least 8",
                    got: other.describe(),
                });
            }
        };
        let data_start = (cursor.offset as u64).checked_next_multiple_of(alignment);
        let mut tensors = BTreeMap::new();
        for (name, shape, code, offset) in raw {
            let info =
                place(path, name, shape, code, (data_start, offset, alignment), bytes.len())?;
            if tensors.insert(name, info).is_some() {
                return Err(InferError::Duplicate { path: path.to_owned(), name: shorten(name) });
            }
        }
        Ok(Self { path: path.to_owned(), metadata, tensors })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A text value that must be there.
    pub(crate) fn text(&self, key: &'static str) -> Result<&'a str, InferError> {
        self.optional_text(key)?.ok_or_else(|| self.missing(key))
    }

    pub(crate) fn optional_text(&self, key: &'static str) -> Result<Option<&'a str>, InferError> {
        match self.metadata.get(key) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong(key, "a text", other)),
        }
    }

    pub(crate) fn texts(&self, key: &'static str) -> Result<&[&'a str], InferError> {
        match self.metadata.get(key) {
            None => Err(self.missing(key)),
            Some(Value::Texts(texts)) => Ok(texts),
            Some(other) => Err(self.wrong(key, "an array of texts", other)),
        }
    }

    pub(crate) fn unsigned(&self, key: &'static str) -> Result<u64, InferError> {
        self.optional_unsigned(key)?.ok_or_else(|| self.missing(key))
    }

    pub(crate) fn optional_unsigned(&self, key: &'static str) -> Result<Option<u64>, InferError> {
        let Some(value) = self.metadata.get(key) else { return Ok(None) };
        match value.as_unsigned() {
            Some(number) => Ok(Some(number)),
            None => Err(self.wrong(key, "a whole number of at least 0", value)),
        }
    }

    pub(crate) fn optional_float(&self, key: &'static str) -> Result<Option<f64>, InferError> {
        match self.metadata.get(key) {
            None => Ok(None),
            Some(&Value::Float(number)) if number.is_finite() => Ok(Some(number)),
            Some(other) => Err(self.wrong(key, "a finite floating-point number", other)),
        }
    }

    pub(crate) fn wrong(&self, key: &str, expected: &'static str, got: &Value<'_>) -> InferError {
        let (path, key) = (self.path.clone(), key.to_owned());
        InferError::KeyValue { path, key, expected, got: got.describe() }
    }

    fn missing(&self, key: &str) -> InferError {
        let (path, key) = (self.path.clone(), key.to_owned());
        InferError::KeyMissing { path, key, expected: "qwen2" }
    }
}

impl Value<'_> {
    pub(crate) fn as_unsigned(&self) -> Option<u64> {
        match *self {
            Self::Unsigned(number) => Some(number),
            Self::Signed(number) => u64::try_from(number).ok(),
            _ => None,
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Unsigned(number) => number.to_string(),
            Self::Signed(number) => number.to_string(),
            Self::Float(number) => number.to_string(),
            Self::Bool(flag) => flag.to_string(),
            Self::Text(text) => format!("\"{}\"", shorten(text)),
            Self::Texts(texts) => format!("an array of {} texts", texts.len()),
            Self::Numbers(numbers) => format!("an array of {} numbers", numbers.len()),
        }
    }
}

/// The first characters of a text from a file, so that no message becomes long.
pub(crate) fn shorten(text: &str) -> String {
    const CHARACTERS: usize = 60;
    let mut short: String = text.chars().take(CHARACTERS).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// Name, shape (row-major), type code and relative offset of a tensor, as read.
type RawTensor<'a> = (&'a str, Vec<u64>, u32, u64);

/// Checks a tensor's place in the file, with arithmetic that cannot overflow.
fn place(
    path: &Path,
    name: &str,
    shape: Vec<u64>,
    code: u32,
    (data_start, relative, alignment): (Option<u64>, u64, u64),
    file_bytes: usize,
) -> Result<TensorInfo, InferError> {
    let tensor = || shorten(name);
    let dtype = dtype_from_code(code).ok_or_else(|| InferError::TensorType {
        path: path.to_owned(),
        tensor: tensor(),
        got: format!("number {code}"),
        supported: SUPPORTED_TYPES,
    })?;
    let row = shape.last().copied().unwrap_or(1);
    let block = dtype.block_size();
    if row % block as u64 != 0 {
        return Err(InferError::TensorBlocks {
            path: path.to_owned(),
            tensor: tensor(),
            row,
            block,
        });
    }
    let elements = shape.iter().try_fold(1_u64, |product, &d| product.checked_mul(d));
    let bytes = elements.and_then(|e| (e / block as u64).checked_mul(dtype.type_size() as u64));
    let offset = data_start.and_then(|start| start.checked_add(relative));
    let range = bytes
        .zip(offset)
        .filter(|&(bytes, offset)| {
            relative % alignment == 0
                && offset.checked_add(bytes).is_some_and(|end| end <= file_bytes as u64)
        })
        .and_then(|(b, o)| Some((usize::try_from(b).ok()?, usize::try_from(o).ok()?)));
    let Some((bytes, offset)) = range else {
        return Err(InferError::TensorRange {
            path: path.to_owned(),
            tensor: tensor(),
            offset: offset.unwrap_or(u64::MAX),
            bytes: bytes.unwrap_or(u64::MAX),
            file_bytes: file_bytes as u64,
            alignment,
        });
    };
    Ok(TensorInfo { shape, dtype, offset, bytes })
}

/// The type behind a number of the format, for the types that official Qwen files use.
fn dtype_from_code(code: u32) -> Option<GgmlDType> {
    Some(match code {
        0 => GgmlDType::F32,
        1 => GgmlDType::F16,
        2 => GgmlDType::Q4_0,
        3 => GgmlDType::Q4_1,
        6 => GgmlDType::Q5_0,
        7 => GgmlDType::Q5_1,
        8 => GgmlDType::Q8_0,
        12 => GgmlDType::Q4K,
        13 => GgmlDType::Q5K,
        14 => GgmlDType::Q6K,
        30 => GgmlDType::BF16,
        _ => return None,
    })
}

/// A position in the header. Every read is checked against what is left.
struct Cursor<'a, 'p> {
    path: &'p Path,
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Cursor<'a, '_> {
    fn take(&mut self, count: u64, what: &'static str) -> Result<&'a [u8], InferError> {
        let rest = &self.bytes[self.offset..];
        match usize::try_from(count).ok().and_then(|count| rest.get(..count)) {
            Some(taken) => {
                self.offset += taken.len();
                Ok(taken)
            }
            None => Err(InferError::Truncated {
                path: self.path.to_owned(),
                what,
                offset: self.offset as u64,
                needed: count,
                available: rest.len() as u64,
            }),
        }
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], InferError> {
        let taken = self.take(N as u64, what)?;
        Ok(taken.try_into().expect("take returns as many bytes as were asked for"))
    }

    fn u32(&mut self, what: &'static str) -> Result<u32, InferError> {
        self.array(what).map(u32::from_le_bytes)
    }

    fn u64(&mut self, what: &'static str) -> Result<u64, InferError> {
        self.array(what).map(u64::from_le_bytes)
    }

    fn text(&mut self, what: &'static str) -> Result<&'a str, InferError> {
        let length = self.u64(what)?;
        let bytes = self.take(length, what)?;
        std::str::from_utf8(bytes).map_err(|error| InferError::KeyValue {
            path: self.path.to_owned(),
            key: what.to_owned(),
            expected: "UTF-8",
            got: error.to_string(),
        })
    }

    fn value(&mut self, key: &str, kind: u32) -> Result<Value<'a>, InferError> {
        match kind {
            STRING => self.text("metadata text").map(Value::Text),
            ARRAY => self.array_value(key),
            _ => self.scalar(key, kind),
        }
    }

    fn scalar(&mut self, key: &str, kind: u32) -> Result<Value<'a>, InferError> {
        let Some(size) = scalar_size(kind) else {
            return Err(self.bad_value(key, "a value type from 0 to 12", &kind));
        };
        let bytes = self.take(size as u64, "metadata value")?;
        scalar(kind, bytes).ok_or_else(|| self.bad_value(key, "a truth value, 0 or 1", &bytes[0]))
    }

    fn array_value(&mut self, key: &str) -> Result<Value<'a>, InferError> {
        let kind = self.u32("array type")?;
        let length = self.u64("array length")?;
        if kind == STRING {
            // No capacity is reserved from `length`: a damaged one ends in `Truncated` instead.
            let mut texts = Vec::new();
            for _ in 0..length {
                texts.push(self.text("array of texts")?);
            }
            return Ok(Value::Texts(texts));
        }
        let Some(size) = scalar_size(kind) else {
            return Err(self.bad_value(key, "an array of plain values", &format!("type {kind}")));
        };
        let bytes = self.take(length.saturating_mul(size as u64), "array of numbers")?;
        Ok(Value::Numbers(Numbers { kind, size, bytes }))
    }

    fn tensor(&mut self) -> Result<RawTensor<'a>, InferError> {
        let name = self.text("tensor name")?;
        let dimensions = self.u32("tensor dimensions")?;
        let mut shape = Vec::new();
        if !(1..=MAX_DIMENSIONS).contains(&dimensions) {
            return Err(self.bad_value(name, "1 to 4 dimensions", &dimensions));
        }
        for _ in 0..dimensions {
            let dimension = self.u64("tensor shape")?;
            if dimension == 0 {
                return Err(self.bad_value(name, "dimensions of at least 1", &dimension));
            }
            shape.push(dimension);
        }
        shape.reverse();
        Ok((name, shape, self.u32("tensor type")?, self.u64("tensor offset")?))
    }

    fn bad_value(&self, key: &str, expected: &'static str, got: &impl ToString) -> InferError {
        InferError::KeyValue {
            path: self.path.to_owned(),
            key: shorten(key),
            expected,
            got: got.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use candle_core::quantized::gguf_file::{Content, Value as CandleValue};

    use super::*;
    use crate::tiny::{TinyDtype, TinyModel};

    #[test]
    fn reads_what_the_library_reads() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tiny.gguf");
        for dtype in TinyDtype::ALL {
            TinyModel::wide().write_gguf(&path, dtype).unwrap();
            let bytes = std::fs::read(&path).unwrap();
            let ours = Gguf::parse(&path, &bytes).unwrap();
            let content = Content::read(&mut std::io::Cursor::new(&bytes)).unwrap();
            assert_eq!(ours.tensors.len(), content.tensor_infos.len());
            for (name, info) in &ours.tensors {
                let expected = &content.tensor_infos[*name];
                let shape: Vec<_> = info.shape.iter().map(|&d| d as usize).collect();
                assert_eq!(shape, expected.shape.dims());
                assert_eq!(info.dtype, expected.ggml_dtype);
                assert_eq!(info.offset as u64, content.tensor_data_offset + expected.offset);
            }
            assert_eq!(ours.metadata.len(), content.metadata.len());
            for (key, value) in &ours.metadata {
                assert_same(value, &content.metadata[*key]);
            }
        }
    }

    fn assert_same(ours: &Value<'_>, library: &CandleValue) {
        match (ours, library) {
            (Value::Unsigned(a), CandleValue::U32(b)) => assert_eq!(*a, u64::from(*b)),
            (Value::Signed(a), CandleValue::I32(b)) => assert_eq!(*a, i64::from(*b)),
            (Value::Float(a), CandleValue::F32(b)) => {
                assert_eq!(a.to_bits(), f64::from(*b).to_bits());
            }
            (Value::Bool(a), CandleValue::Bool(b)) => assert_eq!(a, b),
            (Value::Text(a), CandleValue::String(b)) => assert_eq!(a, b),
            (Value::Texts(a), CandleValue::Array(b)) => {
                assert_eq!(a.len(), b.len());
                a.iter().zip(b).for_each(|(a, b)| assert_eq!(*a, b.to_string().unwrap()));
            }
            (Value::Numbers(a), CandleValue::Array(b)) => {
                assert_eq!(a.len(), b.len());
                a.iter().zip(b).for_each(|(a, b)| assert_same(&a, b));
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn plain_values_keep_their_sign_and_size() {
        assert_eq!(scalar(1, &[0xFF]), Some(Value::Signed(-1)));
        assert_eq!(scalar(3, &[0x00, 0x80]), Some(Value::Signed(-32768)));
        assert_eq!(scalar(0, &[0xFF]), Some(Value::Unsigned(255)));
        assert_eq!(scalar(11, &[0xFF; 8]), Some(Value::Signed(-1)));
        assert_eq!(scalar(10, &[0xFF; 8]), Some(Value::Unsigned(u64::MAX)));
        assert_eq!(scalar(6, &1.5_f32.to_le_bytes()), Some(Value::Float(1.5)));
        assert_eq!(scalar(BOOL, &[2]), None);
    }
}

//! The types in which model files hold weights.

/// How a row of weights is stored in a file: the ggml types that official Qwen2.5 files use, and
/// the three float types of safetensors.
///
/// All numbers are little-endian. A row is a sequence of blocks without gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(non_camel_case_types, reason = "the names under which these types are known")]
pub enum WeightType {
    /// IEEE single precision.
    F32,
    /// IEEE half precision.
    F16,
    /// The upper half of IEEE single precision.
    BF16,
    /// 32 weights of 4 bits and a scale.
    Q4_0,
    /// 32 weights of 4 bits, a scale and a minimum.
    Q4_1,
    /// 32 weights of 5 bits and a scale.
    Q5_0,
    /// 32 weights of 5 bits, a scale and a minimum.
    Q5_1,
    /// 32 weights of 8 bits and a scale.
    Q8_0,
    /// 256 weights of 4 bits in 8 sub-blocks with 6-bit scales and minima.
    Q4_K,
    /// 256 weights of 5 bits in 8 sub-blocks with 6-bit scales and minima.
    Q5_K,
    /// 256 weights of 6 bits in 16 sub-blocks with 8-bit scales.
    Q6_K,
}

impl WeightType {
    /// Every type.
    pub const ALL: [Self; 11] = [
        Self::F32,
        Self::F16,
        Self::BF16,
        Self::Q4_0,
        Self::Q4_1,
        Self::Q5_0,
        Self::Q5_1,
        Self::Q8_0,
        Self::Q4_K,
        Self::Q5_K,
        Self::Q6_K,
    ];

    /// The name that ggml and GGUF files give it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "F32",
            Self::F16 => "F16",
            Self::BF16 => "BF16",
            Self::Q4_0 => "Q4_0",
            Self::Q4_1 => "Q4_1",
            Self::Q5_0 => "Q5_0",
            Self::Q5_1 => "Q5_1",
            Self::Q8_0 => "Q8_0",
            Self::Q4_K => "Q4_K",
            Self::Q5_K => "Q5_K",
            Self::Q6_K => "Q6_K",
        }
    }

    /// The type with this number in a GGUF file's tensor table, if it is one of these.
    pub const fn from_ggml(number: u32) -> Option<Self> {
        Some(match number {
            0 => Self::F32,
            1 => Self::F16,
            2 => Self::Q4_0,
            3 => Self::Q4_1,
            6 => Self::Q5_0,
            7 => Self::Q5_1,
            8 => Self::Q8_0,
            12 => Self::Q4_K,
            13 => Self::Q5_K,
            14 => Self::Q6_K,
            30 => Self::BF16,
            _ => return None,
        })
    }

    /// Weights in a block; a row's length is a multiple of it.
    pub const fn block_weights(self) -> usize {
        match self {
            Self::F32 | Self::F16 | Self::BF16 => 1,
            Self::Q4_0 | Self::Q4_1 | Self::Q5_0 | Self::Q5_1 | Self::Q8_0 => 32,
            Self::Q4_K | Self::Q5_K | Self::Q6_K => 256,
        }
    }

    /// Bytes of a block.
    pub const fn block_bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::BF16 => 2,
            Self::Q4_0 => 18,
            Self::Q4_1 => 20,
            Self::Q5_0 => 22,
            Self::Q5_1 => 24,
            Self::Q8_0 => 34,
            Self::Q4_K => 144,
            Self::Q5_K => 176,
            Self::Q6_K => 210,
        }
    }

    /// Bytes of a row of `columns` weights, `None` if that is no whole number of blocks or too
    /// large for the address space.
    pub const fn row_bytes(self, columns: usize) -> Option<usize> {
        if columns.is_multiple_of(self.block_weights()) {
            (columns / self.block_weights()).checked_mul(self.block_bytes())
        } else {
            None
        }
    }
}

impl std::fmt::Display for WeightType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

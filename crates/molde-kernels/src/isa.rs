//! Which instruction set runs, decided once at run time.

use crate::KernelError;
use crate::arch::{Kernel, Scalar, Simd};

/// An instruction set for which this crate has kernels.
///
/// All of them give bit-identical results; they differ in speed only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Isa {
    /// Portable Rust. Correct everywhere, 20 to 60 times slower.
    Scalar,
    /// x86-64 with AVX2, FMA and F16C: Intel since 2013, AMD since 2015.
    Avx2,
    /// x86-64 with AVX-512 F, BW, DQ, VL and VNNI: Intel since Ice Lake, AMD since Zen 4.
    Avx512Vnni,
    /// 64-bit Arm with Advanced SIMD.
    Neon,
}

impl Isa {
    /// All instruction sets, slowest first.
    pub const ALL: [Self; 4] = [Self::Scalar, Self::Avx2, Self::Neon, Self::Avx512Vnni];

    /// The name, as users know it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Avx2 => "AVX2",
            Self::Avx512Vnni => "AVX-512 VNNI",
            Self::Neon => "NEON",
        }
    }

    /// Whether this processor, under this operating system, can run it.
    pub fn is_available(self) -> bool {
        match self {
            Self::Scalar => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => crate::arch::x86_64::Avx2::detect().is_some(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni => crate::arch::x86_64::Avx512Vnni::detect().is_some(),
            #[cfg(target_arch = "aarch64")]
            Self::Neon => crate::arch::aarch64::Neon::detect().is_some(),
            #[allow(unreachable_patterns)]
            _ => false,
        }
    }

    /// The fastest instruction set that this processor can run.
    pub fn detect() -> Self {
        Self::ALL.into_iter().rev().find(|isa| isa.is_available()).unwrap_or(Self::Scalar)
    }
}

impl std::fmt::Display for Isa {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Proof, per instruction set, that the processor has it.
#[derive(Clone, Copy, Debug)]
enum Token {
    Scalar(Scalar),
    #[cfg(target_arch = "x86_64")]
    Avx2(crate::arch::x86_64::Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512Vnni(crate::arch::x86_64::Avx512Vnni),
    #[cfg(target_arch = "aarch64")]
    Neon(crate::arch::aarch64::Neon),
}

/// The kernels, bound to one instruction set. A copyable handle without state.
#[derive(Clone, Copy, Debug)]
pub struct Kernels {
    isa: Isa,
    token: Token,
}

impl Kernels {
    /// The kernels for the fastest instruction set of this processor.
    pub fn detect() -> Self {
        Self::with_isa(Isa::detect())
            .unwrap_or(Self { isa: Isa::Scalar, token: Token::Scalar(Scalar) })
    }

    /// The kernels for one instruction set, for tests and measurements.
    ///
    /// # Errors
    /// [`KernelError::IsaUnavailable`] if the processor lacks it.
    pub fn with_isa(isa: Isa) -> Result<Self, KernelError> {
        let token = match isa {
            Isa::Scalar => Some(Token::Scalar(Scalar)),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => crate::arch::x86_64::Avx2::detect().map(Token::Avx2),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512Vnni => crate::arch::x86_64::Avx512Vnni::detect().map(Token::Avx512Vnni),
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => crate::arch::aarch64::Neon::detect().map(Token::Neon),
            #[allow(unreachable_patterns)]
            _ => None,
        };
        token.map(|token| Self { isa, token }).ok_or(KernelError::IsaUnavailable { isa })
    }

    /// The instruction set that these kernels use.
    pub const fn isa(&self) -> Isa {
        self.isa
    }

    /// Runs a generic kernel with this instruction set enabled for everything inlined into it.
    pub(crate) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self.token {
            Token::Scalar(simd) => simd.enter(kernel),
            #[cfg(target_arch = "x86_64")]
            Token::Avx2(simd) => simd.enter(kernel),
            #[cfg(target_arch = "x86_64")]
            Token::Avx512Vnni(simd) => simd.enter(kernel),
            #[cfg(target_arch = "aarch64")]
            Token::Neon(simd) => simd.enter(kernel),
        }
    }
}

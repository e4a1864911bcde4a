//! The weights of a model as its file has them: one view over GGUF and safetensors.

use candle_core::Tensor;
use molde_kernels::{PackedMatrix, WeightMemory};
use rayon::ThreadPool;

use crate::exact::Table;
use crate::{InferError, Interrupt};

/// A weight of a Qwen2 model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Embedding,
    OutputNorm,
    Head,
    Layer(usize, LayerRole),
}

/// A weight of one layer, named as in the checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LayerRole {
    InputNorm,
    QProj,
    QBias,
    KProj,
    KBias,
    VProj,
    VBias,
    OProj,
    PostAttentionNorm,
    GateProj,
    UpProj,
    DownProj,
}

impl Role {
    /// The name in a safetensors checkpoint.
    pub(crate) fn safetensors_name(self) -> String {
        use LayerRole as L;
        let (layer, role) = match self {
            Self::Embedding => return "model.embed_tokens.weight".to_owned(),
            Self::OutputNorm => return "model.norm.weight".to_owned(),
            Self::Head => return "lm_head.weight".to_owned(),
            Self::Layer(layer, role) => (layer, role),
        };
        let name = match role {
            L::InputNorm => "input_layernorm.weight",
            L::QProj => "self_attn.q_proj.weight",
            L::QBias => "self_attn.q_proj.bias",
            L::KProj => "self_attn.k_proj.weight",
            L::KBias => "self_attn.k_proj.bias",
            L::VProj => "self_attn.v_proj.weight",
            L::VBias => "self_attn.v_proj.bias",
            L::OProj => "self_attn.o_proj.weight",
            L::PostAttentionNorm => "post_attention_layernorm.weight",
            L::GateProj => "mlp.gate_proj.weight",
            L::UpProj => "mlp.up_proj.weight",
            L::DownProj => "mlp.down_proj.weight",
        };
        format!("model.layers.{layer}.{name}")
    }

    /// The name in a GGUF file.
    pub(crate) fn gguf_name(self) -> String {
        use LayerRole as L;
        let (layer, role) = match self {
            Self::Embedding => return "token_embd.weight".to_owned(),
            Self::OutputNorm => return "output_norm.weight".to_owned(),
            Self::Head => return "output.weight".to_owned(),
            Self::Layer(layer, role) => (layer, role),
        };
        let name = match role {
            L::InputNorm => "attn_norm.weight",
            L::QProj => "attn_q.weight",
            L::QBias => "attn_q.bias",
            L::KProj => "attn_k.weight",
            L::KBias => "attn_k.bias",
            L::VProj => "attn_v.weight",
            L::VBias => "attn_v.bias",
            L::OProj => "attn_output.weight",
            L::PostAttentionNorm => "ffn_norm.weight",
            L::GateProj => "ffn_gate.weight",
            L::UpProj => "ffn_up.weight",
            L::DownProj => "ffn_down.weight",
        };
        format!("blk.{layer}.{name}")
    }
}

/// How weights are held in memory, and hence with which arithmetic they are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Precision {
    /// Quantized matrices as the file has them, to the bit; `F32`, `F16` and `BF16` matrices, of
    /// GGUF and of safetensors, are quantized to `Q8_0` while loading. Products round the
    /// activations to 8 bits in blocks of 32; everything between them is `f32`. Logits are the
    /// same to the bit however the tokens are cut into calls and chunks, and for any number of
    /// threads. Needs heads of a multiple of 16 values, as all published Qwen2 models have.
    #[default]
    Native,
    /// Every weight that is multiplied with as `f32`, all arithmetic in `f32`. Four bytes a
    /// weight: 2 GB for the 0.5B models. The reference that `Native` is measured against.
    Exact,
}

/// What matrices are packed with, and where they go.
#[derive(Clone, Copy)]
pub(crate) struct Packing<'a> {
    pub(crate) pool: &'a ThreadPool,
    pub(crate) memory: &'a WeightMemory,
}

/// A checked source of weights.
pub(crate) trait Checkpoint {
    fn contains(&self, role: Role) -> bool;

    /// Number of rows of a matrix with `columns` columns.
    fn rows(&self, role: Role, columns: usize) -> Result<usize, InferError>;

    /// A vector of exactly `length` values, as `f32`.
    fn vector(&self, role: Role, length: usize) -> Result<Vec<f32>, InferError>;

    /// The first `keep` rows of a matrix of exactly `shape`, rows and columns, as `f32`.
    fn matrix(&self, role: Role, shape: (usize, usize), keep: usize) -> Result<Tensor, InferError>;

    /// The same for a matrix whose rows are only looked up.
    fn table(&self, role: Role, shape: (usize, usize), keep: usize) -> Result<Table, InferError> {
        self.matrix(role, shape, keep).map(Table::Full)
    }

    /// The same, packed for the kernels.
    fn packed(
        &self,
        role: Role,
        shape: (usize, usize),
        keep: usize,
        packing: Packing<'_>,
    ) -> Result<PackedMatrix, InferError>;
}

/// A source that is asked for no further matrix once the work is to stop.
pub(crate) struct Interruptible<'a> {
    pub(crate) checkpoint: &'a dyn Checkpoint,
    pub(crate) interrupt: &'a Interrupt,
}

impl Checkpoint for Interruptible<'_> {
    fn contains(&self, role: Role) -> bool {
        self.checkpoint.contains(role)
    }

    fn rows(&self, role: Role, columns: usize) -> Result<usize, InferError> {
        self.checkpoint.rows(role, columns)
    }

    fn vector(&self, role: Role, length: usize) -> Result<Vec<f32>, InferError> {
        self.checkpoint.vector(role, length)
    }

    fn matrix(&self, role: Role, shape: (usize, usize), keep: usize) -> Result<Tensor, InferError> {
        self.interrupt.check()?;
        self.checkpoint.matrix(role, shape, keep)
    }

    fn table(&self, role: Role, shape: (usize, usize), keep: usize) -> Result<Table, InferError> {
        self.interrupt.check()?;
        self.checkpoint.table(role, shape, keep)
    }

    fn packed(
        &self,
        role: Role,
        shape: (usize, usize),
        keep: usize,
        packing: Packing<'_>,
    ) -> Result<PackedMatrix, InferError> {
        self.interrupt.check()?;
        self.checkpoint.packed(role, shape, keep, packing)
    }
}

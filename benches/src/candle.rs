//! candle-transformers' own quantized Qwen2, as the baseline.

use std::path::Path;

use candle_core::quantized::gguf_file::Content;
use candle_core::{Device, Tensor};
use candle_transformers::models::quantized_qwen2::ModelWeights;
use molde_vocab::TokenId;

pub(crate) struct Candle {
    weights: ModelWeights,
}

impl Candle {
    pub(crate) fn load(path: &Path) -> anyhow::Result<Self> {
        let mut file = std::fs::File::open(path)?;
        let content = Content::read(&mut file)?;
        Ok(Self { weights: ModelWeights::from_gguf(content, &mut file, &Device::Cpu)? })
    }

    /// The logits after the last of some tokens, the first of which is at `position`; 0 begins a
    /// new sequence.
    pub(crate) fn forward(
        &mut self,
        tokens: &[TokenId],
        position: usize,
    ) -> anyhow::Result<Vec<f32>> {
        let input = Tensor::new(tokens, &Device::Cpu)?.unsqueeze(0)?;
        Ok(self.weights.forward(&input, position)?.flatten_all()?.to_vec1()?)
    }
}

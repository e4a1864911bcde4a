//! A model from disk: weights, tokenizer and chat template together.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use molde_vocab::TokenId;
use serde::Deserialize;
use serde_json::Value as Json;

use crate::chat::SpecialTokens;
use crate::checkpoint::{Checkpoint, Interruptible, Role};
use crate::gguf::Gguf;
use crate::gguf_checkpoint::GgufCheckpoint;
use crate::mmap::MappedFile;
use crate::safetensors_checkpoint::{SafetensorsCheckpoint, map_shards};
use crate::tokenizer_parts::TokenizerParts;
use crate::{ChatTemplate, InferError, Interrupt, Model, ModelConfig, ModelOptions, Tokenizer};

/// Everything a model's files hold. Cheap to clone.
#[derive(Debug, Clone)]
pub struct LoadedModel {
    /// The weights.
    pub model: Arc<Model>,
    /// Text to tokens and back.
    pub tokenizer: Arc<Tokenizer>,
    /// How conversations are written; `None` for a model that was not made for them.
    pub chat_template: Option<Arc<ChatTemplate>>,
}

impl LoadedModel {
    /// Loads a GGUF file, or a folder with `config.json`, `tokenizer.json` and
    /// `model.safetensors` or `model.safetensors.index.json` and its shards. A folder's
    /// `generation_config.json`, `tokenizer_config.json` and `chat_template.jinja` are used where
    /// they exist.
    ///
    /// Everything is checked before it is used. The files are mapped while this runs and not
    /// needed afterwards. Attention: they must not be truncated meanwhile.
    ///
    /// # Errors
    /// Any of the errors about files, tensors and tokenizers; each names the file.
    ///
    /// # Complexity
    /// One copy of the weights; for safetensors under
    /// [`Precision::Native`](crate::Precision::Native) also their quantization.
    pub fn load(path: &Path, options: &ModelOptions) -> Result<Self, InferError> {
        Self::load_unless(path, options, &Interrupt::default())
    }

    /// Like [`load`](Self::load), and stops between two matrices if `interrupt` says so.
    ///
    /// # Errors
    /// Those of [`load`](Self::load), [`InferError::Cancelled`] and
    /// [`InferError::DeadlineExceeded`].
    pub fn load_unless(
        path: &Path,
        options: &ModelOptions,
        interrupt: &Interrupt,
    ) -> Result<Self, InferError> {
        interrupt.check()?;
        let metadata = std::fs::metadata(path)
            .map_err(|source| InferError::Io { path: path.to_owned(), source })?;
        let load = if metadata.is_dir() { load_folder } else { load_gguf };
        load(path, options, interrupt)
    }

    fn assemble(
        path: &Path,
        (config, tied_head): (ModelConfig, bool),
        tokenizer: Tokenizer,
        chat_template: Option<ChatTemplate>,
        checkpoint: &dyn Checkpoint,
        options: &ModelOptions,
        interrupt: &Interrupt,
    ) -> Result<Self, InferError> {
        let checkpoint = &Interruptible { checkpoint, interrupt };
        let tokens = tokenizer.vocabulary().len();
        let rows = checkpoint.rows(Role::Embedding, config.hidden_size)?;
        if tokens > rows {
            return Err(InferError::VocabularySize { path: path.to_owned(), tokens, rows });
        }
        let model = Model::load(config, tokens, tied_head, checkpoint, options)?;
        Ok(Self {
            model: Arc::new(model),
            tokenizer: Arc::new(tokenizer),
            chat_template: chat_template.map(Arc::new),
        })
    }
}

impl Tokenizer {
    /// Loads only the tokenizer: of a GGUF file, of a folder with a `tokenizer.json`, or a
    /// `tokenizer.json` itself. No weights are needed.
    ///
    /// # Errors
    /// As [`LoadedModel::load`], without those about weights.
    ///
    /// # Complexity
    /// About half a second for a Qwen vocabulary, most of it for the token trie.
    pub fn load(path: &Path) -> Result<Self, InferError> {
        let metadata = std::fs::metadata(path)
            .map_err(|source| InferError::Io { path: path.to_owned(), source })?;
        if metadata.is_dir() {
            return Folder(path).tokenizer();
        }
        if path.extension().is_some_and(|extension| extension == "json") {
            let text = read(path)?;
            return Self::new(path, TokenizerParts::from_json(path, &text, Vec::new())?);
        }
        let file = MappedFile::open(path)?;
        let header = Gguf::parse(path, file.bytes())?;
        Self::new(path, TokenizerParts::from_gguf(&header)?)
    }
}

fn load_gguf(
    path: &Path,
    options: &ModelOptions,
    interrupt: &Interrupt,
) -> Result<LoadedModel, InferError> {
    let file = MappedFile::open(path)?;
    let header = Gguf::parse(path, file.bytes())?;
    let config = ModelConfig::from_gguf(&header)?;
    let tokenizer = Tokenizer::new(path, TokenizerParts::from_gguf(&header)?)?;
    let checkpoint = GgufCheckpoint { header: &header, file: &file };
    let spelling = |key| -> Result<Option<String>, InferError> {
        let id = header.optional_unsigned(key)?;
        let texts = header.texts("tokenizer.ggml.tokens")?;
        Ok(id.and_then(|id| texts.get(usize::try_from(id).ok()?)).map(|&text| text.to_owned()))
    };
    let special_tokens = SpecialTokens {
        bos: spelling("tokenizer.ggml.bos_token_id")?,
        eos: spelling("tokenizer.ggml.eos_token_id")?,
    };
    let template = header
        .optional_text("tokenizer.chat_template")?
        .map(|source| ChatTemplate::new(source, special_tokens))
        .transpose()?;
    let tied_head = !checkpoint.contains(Role::Head);
    let shape = (config, tied_head);
    LoadedModel::assemble(path, shape, tokenizer, template, &checkpoint, options, interrupt)
}

fn load_folder(
    folder: &Path,
    options: &ModelOptions,
    interrupt: &Interrupt,
) -> Result<LoadedModel, InferError> {
    let files = Folder(folder);
    let (config_path, config_text) = files.required("config.json")?;
    let config = ModelConfig::from_json(&config_path, &config_text)?;
    let tokenizer_config: TokenizerConfigJson = files.json("tokenizer_config.json")?;

    let tokenizer = files.tokenizer()?;

    let special_tokens = SpecialTokens {
        bos: tokenizer_config.bos_token.as_ref().and_then(spelling),
        eos: tokenizer_config.eos_token.as_ref().and_then(spelling),
    };
    // A file of its own goes before the field, as in Hugging Face transformers.
    let template = match files.optional("chat_template.jinja")? {
        Some((_, source)) => Some(source),
        None => tokenizer_config.chat_template.as_ref().and_then(default_template),
    };
    let template = template.map(|source| ChatTemplate::new(&source, special_tokens)).transpose()?;

    let shards = map_shards(folder)?;
    let checkpoint = SafetensorsCheckpoint::parse(folder, &shards)?;
    LoadedModel::assemble(folder, config, tokenizer, template, &checkpoint, options, interrupt)
}

#[derive(Deserialize, Default)]
struct TokenizerConfigJson {
    #[serde(default)]
    chat_template: Option<Json>,
    #[serde(default)]
    bos_token: Option<Json>,
    #[serde(default)]
    eos_token: Option<Json>,
}

#[derive(Deserialize, Default)]
struct EndOfTurnJson {
    #[serde(default)]
    eos_token_id: Option<Ids>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Ids {
    One(TokenId),
    Many(Vec<TokenId>),
}

/// A special token is spelled as a text, or as an object with the text in it.
fn spelling(token: &Json) -> Option<String> {
    token.as_str().or_else(|| token["content"].as_str()).map(str::to_owned)
}

/// A template is a text, or a list of named ones.
fn default_template(field: &Json) -> Option<String> {
    if let Some(template) = field.as_str() {
        return Some(template.to_owned());
    }
    let default = field.as_array()?.iter().find(|template| template["name"] == "default")?;
    default["template"].as_str().map(str::to_owned)
}

fn read(path: &Path) -> Result<String, InferError> {
    std::fs::read_to_string(path).map_err(|source| InferError::Io { path: path.to_owned(), source })
}

struct Folder<'p>(&'p Path);

impl Folder<'_> {
    fn optional(&self, name: &str) -> Result<Option<(PathBuf, String)>, InferError> {
        let path = self.0.join(name);
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(Some((path, text))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(InferError::Io { path, source }),
        }
    }

    fn required(&self, name: &'static str) -> Result<(PathBuf, String), InferError> {
        let missing = || InferError::MissingFile { folder: self.0.to_owned(), expected: name };
        self.optional(name)?.ok_or_else(missing)
    }

    /// The tokenizer, with the end-of-turn tokens that the folder's other files name.
    fn tokenizer(&self) -> Result<Tokenizer, InferError> {
        let mut end_of_turn = Vec::new();
        for name in ["generation_config.json", "config.json"] {
            let ids: EndOfTurnJson = self.json(name)?;
            end_of_turn.extend(match ids.eos_token_id {
                None => Vec::new(),
                Some(Ids::One(id)) => vec![id],
                Some(Ids::Many(ids)) => ids,
            });
        }
        let (path, text) = self.required("tokenizer.json")?;
        Tokenizer::new(&path, TokenizerParts::from_json(&path, &text, end_of_turn)?)
    }

    fn json<T: Default + for<'de> Deserialize<'de>>(&self, name: &str) -> Result<T, InferError> {
        match self.optional(name)? {
            None => Ok(T::default()),
            Some((path, text)) => {
                serde_json::from_str(&text).map_err(|source| InferError::Json { path, source })
            }
        }
    }
}

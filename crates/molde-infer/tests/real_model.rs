//! The real model file. Skipped, with a message, where the weights are missing.

mod support;

use std::time::Instant;

use molde_infer::{GenerateRequest, LoadedModel, Message, ModelOptions, generate};

#[test]
fn answers_a_question_in_its_own_chat_format() {
    let Some(path) = support::real_model() else { return };
    let started = Instant::now();
    let loaded = LoadedModel::load(&path, &ModelOptions::default()).unwrap();
    println!("loaded in {:?}", started.elapsed());
    let template = loaded.chat_template.as_ref().unwrap();
    let messages = [
        Message::system("You are a helpful assistant."),
        Message::user("What is the capital of France? Answer in one word."),
    ];
    let prompt = template.encode(&loaded.tokenizer, &messages).unwrap();
    let mut cache = loaded.model.new_cache(prompt.len() + 16);
    let request = GenerateRequest::new(prompt, 16);
    let outcome = generate(
        &loaded.model,
        &loaded.tokenizer,
        &request,
        &mut cache,
        None,
        &mut |_| {},
    )
    .unwrap();
    println!("{outcome:?}");
    assert!(outcome.text.contains("Paris"), "{}", outcome.text);
}

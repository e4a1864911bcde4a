// The npm SDKs against a running server: node check_node.mjs URL MODEL, in a folder with `openai`,
// `@anthropic-ai/sdk` and `zod`.
import Anthropic from "@anthropic-ai/sdk";
import { zodOutputFormat } from "@anthropic-ai/sdk/helpers/zod";
import OpenAI from "openai";
import { zodFunction, zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";

const [url, model] = process.argv.slice(2);
const text = "Para el segundo trimestre de 2024 esperamos ingresos de entre 12,5 y 13,1 millones.";
const messages = [{ role: "user", content: text }];
const Prevision = z.object({
  trimestre: z.number().int().min(1).max(4).nullable(),
  anio: z.number().int().min(2018).max(2026).nullable(),
  bajo: z.number().positive().nullable(),
  alto: z.number().positive().nullable(),
});
const openai = new OpenAI({ baseURL: url + "/v1", apiKey: "local", maxRetries: 0 });
const anthropic = new Anthropic({ baseURL: url, apiKey: "local", maxRetries: 0 });

function check(condition, what) {
  if (!condition) throw new Error(what);
}

const checks = {
  async chatParse() {
    const answer = await openai.chat.completions.parse({ model, messages, response_format: zodResponseFormat(Prevision, "prevision") });
    Prevision.parse(answer.choices[0].message.parsed);
  },
  async chatTools() {
    const tool = zodFunction({ name: "guardar", parameters: Prevision });
    const answer = await openai.chat.completions.parse({ model, messages, tools: [tool], tool_choice: "required", parallel_tool_calls: false });
    Prevision.parse(answer.choices[0].message.tool_calls[0].function.parsed_arguments);
  },
  async chatStream() {
    const stream = openai.chat.completions.stream({ model, messages, response_format: zodResponseFormat(Prevision, "prevision") });
    let pieces = 0;
    for await (const _ of stream) pieces += 1;
    const answer = await stream.finalChatCompletion();
    Prevision.parse(answer.choices[0].message.parsed);
    check(pieces > 1, "it came in one piece");
  },
  async responsesParse() {
    const answer = await openai.responses.parse({ model, input: messages, text: { format: zodTextFormat(Prevision, "prevision") } });
    Prevision.parse(answer.output_parsed);
    check((await openai.responses.retrieve(answer.id)).id === answer.id, "it was not kept");
  },
  async responsesStream() {
    const stream = openai.responses.stream({ model, input: messages, text: { format: zodTextFormat(Prevision, "prevision") } });
    for await (const _ of stream);
    Prevision.parse((await stream.finalResponse()).output_parsed);
  },
  async messagesParse() {
    const answer = await anthropic.messages.parse({ model, max_tokens: 300, messages, output_config: { format: zodOutputFormat(Prevision) } });
    Prevision.parse(answer.parsed_output);
  },
  async messagesTools() {
    const tools = [{ name: "guardar", input_schema: z.toJSONSchema(Prevision) }];
    const answer = await anthropic.messages.create({ model, max_tokens: 200, messages, tools, tool_choice: { type: "any" } });
    Prevision.parse(answer.content.find((block) => block.type === "tool_use").input);
  },
  async messagesStream() {
    const stream = anthropic.messages.stream({ model, max_tokens: 20, messages });
    let heard = "";
    stream.on("text", (piece) => (heard += piece));
    const answer = await stream.finalMessage();
    check(heard === answer.content[0].text, "the pieces are not the text");
  },
  async models() {
    const names = [];
    for await (const entry of openai.models.list()) names.push(entry.id);
    check(names.includes(model), names.join());
    check((await anthropic.models.retrieve(model)).id === model, "not retrieved");
  },
  async errors() {
    const fails = async (kind, work) => {
      try {
        await work();
      } catch (error) {
        check(error instanceof kind, String(error));
        return error;
      }
      throw new Error("expected " + kind.name);
    };
    await fails(OpenAI.NotFoundError, () => openai.chat.completions.create({ model: "nobody", messages }));
    await fails(Anthropic.NotFoundError, () => anthropic.messages.create({ model: "nobody", max_tokens: 5, messages }));
    const schema = { properties: { a: { type: "text" } } };
    const bad = await fails(OpenAI.BadRequestError, () =>
      openai.chat.completions.create({ model, messages, response_format: { type: "json_schema", json_schema: { name: "x", schema } } }));
    check(bad.message.includes("/properties/a/type"), bad.message);
  },
};

let failed = 0;
for (const [name, work] of Object.entries(checks)) {
  try {
    await work();
    console.log("ok", name);
  } catch (error) {
    failed += 1;
    console.log("FAILED", name, error);
  }
}
process.exit(failed ? 1 : 0);

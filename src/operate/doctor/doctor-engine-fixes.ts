import type { EngineKind } from '../../catalog/model.ts'
import type { QuestionName } from './doctor-engine-questions.ts'

type Fixes = Readonly<Partial<Record<EngineKind | 'other', string>>>

/** The parser has to fit the model: the names are those for Qwen. */
const toolParsers: Fixes = {
  vllm: 'start vLLM with --enable-auto-tool-choice --tool-call-parser hermes (the parser for Qwen; others have their own)',
  sglang: 'start SGLang with --tool-call-parser qwen25 (the parser for Qwen; others have their own)',
  llamacpp: "start llama-server with --jinja, so that it uses the model's own template; some models know no tools",
  llamacpp_python: 'start the server with --chat_format chatml-function-calling',
  ollama: 'use a model whose template has tools: ollama show MODEL lists what it is capable of',
  other: "turn on the server's parser of tool calls for this model",
}

const fixes: Readonly<Partial<Record<QuestionName, Fixes>>> = {
  tools: toolParsers,
  'tool stream': toolParsers,
  reasoning: {
    vllm: 'start vLLM with --reasoning-parser qwen3 (or the one for this model)',
    sglang: 'start SGLang with --reasoning-parser qwen3 (or the one for this model)',
    llamacpp: 'start llama-server with --jinja --reasoning-format deepseek',
    ollama: 'use a model that ollama show MODEL lists as capable of thinking',
    other: "turn on the server's parser of reasoning for this model",
  },
  'json schema': {
    vllm: 'remove --structured-outputs-config or --guided-decoding-backend from the command of vLLM: the default enforces schemas',
    sglang: 'start SGLang with --grammar-backend xgrammar',
    llamacpp: 'update llama-server: it enforces schemas without an option',
    other: 'leave response_format out of supported_parameters, so that Weir refuses what the server ignores',
  },
  usage: {
    vllm: 'start vLLM with --enable-force-include-usage, or write usage: estimated into the engine of the catalog entry',
    other: 'write usage: estimated into the engine of the catalog entry, so that Weir counts the tokens itself',
  },
  'stop reason': {
    other: 'update the server: clients cannot tell an answer that was cut off from a complete one',
  },
}

/** Undefined if no option changes it. */
export function fixOf(question: QuestionName, kind: EngineKind): string | undefined {
  const forQuestion = fixes[question]
  return forQuestion?.[kind] ?? forQuestion?.other
}

/** What docs/engines.md says about each kind besides its parameters. */

const openaiUsage = '`usage` in the answer, and in the last event of a stream (`stream_options.include_usage`).'
const runningUsage =
  '`usage` in the answer. In a stream, a count with every piece (`continuous_usage_stats`), so a stream that ends early is billed exactly.'
const stopsOnClose =
  'The server stops when the connection closes. Weir bills its last count, plus one token for each later piece.'
const noText = 'One call at a time; nothing is generated.'

/** @type {Readonly<Record<import('../src/catalog/model.ts').EngineKind, object>>} */
export const engineNotes = {
  embedded: {
    server: "Weir's own engine host: llama.cpp and ONNX in processes of their own.",
    choices: 'Native.',
    usage: runningUsage,
    abort: 'It stops at the next token. Billed exactly.',
    tooLong: '400 `context_length_exceeded`.',
    read: 'the source in `packages/local-models/host`.',
  },
  openai: {
    server: 'OpenAI, and any server with a compatible API that has no kind of its own.',
    choices: 'Native, as far as the server knows `n` and several prompts.',
    usage: `${openaiUsage} A count with every piece if the server offers it.`,
    abort: stopsOnClose,
    tooLong: 'Usually 400 with a message about the context length, which Weir passes on as `context_length_exceeded`.',
    more: [
      'Every parameter is forwarded, because nothing is known about the server. If yours ignores some, do not list them in `supported_parameters`, or choose the kind of the server.',
    ],
    read: "OpenAI's API reference.",
  },
  vllm: {
    server: 'vLLM.',
    choices: 'Native: `n` up to what its scheduler holds, and several prompts.',
    usage: `${runningUsage} Cached tokens with \`--enable-prompt-tokens-details\`.`,
    abort: 'The request is aborted in the engine when the connection closes.',
    tooLong: '400 with "maximum context length". For rankings, Weir asks again with `truncate_prompt_tokens`.',
    more: [
      '`suffix` gets 400 ("suffix is not currently supported"). `best_of` is gone from the protocol; unknown fields are ignored.',
    ],
    read: 'vllm-project/vllm, vllm/entrypoints/openai/chat_completion/protocol.py and completion/protocol.py at 002032ee2b18; the refusal of `suffix` in its completion renderer.',
  },
  sglang: {
    server: 'SGLang.',
    choices: 'Native: `n` and several prompts.',
    usage: `${runningUsage} Cached tokens with \`--enable-cache-report\`.`,
    abort: 'The request is aborted in the engine when the connection closes.',
    tooLong:
      '400 with a message about the context length. In a stream, older versions send 200 and an event with that error.',
    more: [
      '`best_of` is in its protocol, but nothing reads it. `suffix` is read only with `--completion-template`, and silently ignored without, so Weir refuses it.',
    ],
    read: 'sgl-project/sglang, python/sglang/srt/entrypoints/openai/protocol.py and serving_completions.py at 004c82e07d87.',
  },
  llamacpp: {
    server: "llama.cpp's own HTTP server (`llama-server`).",
    choices:
      'Versions before `n_cmpl` answer 400 to `n` above 1. Newer ones take it, up to the number of slots, but `usage` counts only the first choice, or the first of several prompts. So Weir makes a call for each choice of each prompt.',
    usage:
      '`usage` in the answer. In a stream, a count with every piece (`timings_per_token`), so a stream that ends early is billed exactly. Cached tokens in `usage`, or in `timings.cache_n`.',
    abort: 'The server stops when the connection closes.',
    tooLong:
      '400 `exceed_context_size_error`, "exceeds the available context size", for streams too. Embeddings: 500, "is too large to process".',
    more: [
      '`echo`, `suffix` and `best_of` are refused by the server itself, or silently ignored, depending on its version.',
      '`reasoning_effort` becomes an argument of the chat template: older versions ignore the parameter itself. `none` also sets `enable_thinking: false`.',
      '`dimensions` is ignored, so Weir refuses it.',
    ],
    read: 'ggml-org/llama.cpp, tools/server/server-common.cpp at aa6192d38def and server-schema.cpp at 0177c34227eb; issues and pull requests 26045, 26941. Captured from build 11549 (as xllamacpp 2026.10 carries it) with SmolLM2 135M: `n`, several prompts, `echo`, `suffix`, `dimensions`, context overflow.',
  },
  llamacpp_python: {
    server: "llama-cpp-python's server (`python -m llama_cpp.server`).",
    choices:
      '`n` and `best_of` are silently ignored. Several prompts get 500 with an empty message. So Weir makes a call for each choice of each prompt.',
    usage:
      '`usage` in the answer, but none in a stream: it knows no `stream_options`. Streams are billed by their pieces.',
    abort: 'It stops when it next looks for the connection, about once for each token.',
    tooLong:
      '400 `context_length_exceeded`, but for a stream 200 with an empty body. Embeddings are truncated silently.',
    more: [
      'It has one lock for each model, and no health path: GET /v1/models waits for the lock, or interrupts what is being generated (`interrupt_requests`). Weir asks for /health, which needs no lock: the 404 is a sign of life.',
      'Ids of tool calls repeat from answer to answer.',
      'It refuses an `X-Request-Id` that is not a UUID with 400, so it gets none.',
      '`response_format: json_schema` is sent as `json_object` with a `schema`, the only form it knows: its own check refuses `json_schema` with 500. `top_k: -1` is sent as 0.',
      'It always answers embeddings with numbers; Weir encodes base64 itself.',
    ],
    read: 'abetlen/llama-cpp-python, llama_cpp/server/app.py at 013daea858d4, types.py at 10732af5deac; issues 1082 and 1640, pull requests 1552 and 2167. Captured from 0.3.36: `n`, several prompts, streams, tools, `json_schema`, embeddings, context overflow.',
  },
  ollama: {
    server: 'Ollama, through its OpenAI-compatible API.',
    choices: '`n` is silently ignored, and `prompt` is one text. So Weir makes a call for each choice of each prompt.',
    usage: `${openaiUsage} \`prompt_tokens\` is the number of tokens that were evaluated.`,
    abort: stopsOnClose,
    tooLong:
      'Silently truncated to its `num_ctx`, whatever the model could read. Give the catalog that `context_length`.',
    more: [
      'Its own options (`top_k`, `min_p`, `repeat_penalty` …) cannot be sent through this API: the request has no field for them. Set them in the Modelfile.',
      '`tool_choice`, `parallel_tool_calls`, `logit_bias`, `echo` and `best_of` are silently ignored, so Weir refuses them. `logprobs` needs 0.12.11 or later.',
    ],
    read: 'ollama/ollama, openai/openai.go at 634c41664579 and 00988753ff74; answers of 0.17.4.',
  },
  tei: {
    server: "Hugging Face's text-embeddings-inference.",
    choices: noText,
    usage: 'The header `x-compute-tokens`.',
    abort: 'Whole answers only. The input is billed by an estimate.',
    tooLong: '413 for embeddings, because Weir asks for no truncation; rankings are truncated as the request says.',
    more: ['It takes 32 texts at a time by default, so Weir makes several calls. Old versions ignore `dimensions`.'],
    read: 'huggingface/text-embeddings-inference, router/src/http/types.rs at 02506d0b3879; its API documentation for `dimensions`.',
  },
  infinity: {
    server: 'infinity (infinity_emb).',
    choices: noText,
    usage:
      'Estimated, and flagged as estimated. Its `usage` counts characters ("A weir holds water." is 19) unless it was started with `lengths_via_tokenize`, and an answer does not say which. If it was, add `usage: reported` to the engine in the catalog.',
    abort: 'Whole answers only. The input is billed by an estimate.',
    tooLong: 'Silently truncated by the model. 422 above 122,880 characters.',
    more: [
      'Its paths are at the root unless `url_prefix` says otherwise, so the address in the catalog has no /v1.',
      'With a single model it ignores the name of the model.',
    ],
    read: 'michaelfeil/infinity, infinity_server.py at 052378fac656, fastapi_schemas/pymodels.py at 0255f05df64f. Captured from 0.0.78: embeddings, `dimensions` and /health with its debug engine, rankings with a stub model.',
  },
  nim: {
    server: "NVIDIA's NIM containers, for language models and for retrieval.",
    choices: 'Native. NIM 2 runs vLLM.',
    usage: openaiUsage,
    abort: stopsOnClose,
    tooLong: '400 for text; retrieval models refuse with `truncate: NONE`, or truncate with `END`.',
    more: ['`suffix` and `best_of` are refused, as for vLLM.'],
    read: "NVIDIA's documentation: NIM for LLMs 1.0 to 2.0, API reference; Text Embedding and Text Reranking NIM.",
  },
  litellm: {
    server: "LiteLLM's proxy, in front of other providers.",
    choices: 'Whatever the provider behind it does.',
    usage: `${openaiUsage} Rankings are estimated.`,
    abort: stopsOnClose,
    tooLong: '400 with a message that starts with "litellm.ContextWindowExceededError".',
    more: [
      'It refuses a parameter that the provider does not know (400 `UnsupportedParamsError`). With `drop_params: true` it drops such parameters silently: leave that off, or list only what the provider takes.',
      'Never use its /health as a health path: it calls every model that it knows.',
      "It retries what failed, so a provider's 500 takes seconds to arrive.",
    ],
    read: "LiteLLM's documentation (drop_params, rerank, health checks); BerriAI/litellm, litellm/proxy/_types.py. Captured from 1.106.2 in front of llama.cpp: chat, embeddings, errors, /health and /health/liveliness.",
  },
  cohere: {
    server: "Cohere's API, with https://…/v2 as the address.",
    choices: noText,
    usage: 'Estimated: Cohere counts searches, not tokens.',
    abort: 'Whole answers only. The input is billed by an estimate.',
    tooLong: 'Documents are truncated, to `max_tokens_per_doc` if it is given.',
    read: "Cohere's documentation, Rerank v2.",
  },
  jina: {
    server: "Jina AI's API.",
    choices: noText,
    usage: '`usage` in the answer.',
    abort: 'Whole answers only. The input is billed by an estimate.',
    tooLong: 'Documents are truncated.',
    read: "Jina's documentation, Embeddings and Reranker.",
  },
  localai: {
    server: 'LocalAI.',
    choices: 'Native `n`.',
    usage: `${openaiUsage} Embeddings and rankings are estimated: it counts nothing there, or words.`,
    abort: stopsOnClose,
    tooLong: 'Depends on its backend.',
    more: [
      'The negative prompt of an image follows a `|` in the prompt. It has no path for translations.',
      '`repetition_penalty` is its `repeat_penalty`. `dimensions`, `suffix`, `best_of`, `parallel_tool_calls` and `chat_template_kwargs` have no field, so Weir refuses them.',
    ],
    read: 'mudler/LocalAI, core/schema/prediction.go and openai.go at 00fcf6936c33.',
  },
  sdcpp: {
    server: "stable-diffusion.cpp's server.",
    choices: 'At most 8 images in a call, so Weir makes several.',
    usage: 'Images are billed by their number.',
    abort: 'No image is billed if the caller leaves before the answer.',
    tooLong: 'The text encoder truncates the prompt.',
    more: ['`seed`, `steps` and `negative_prompt` travel inside the prompt, as the server expects.'],
    read: 'leejet/stable-diffusion.cpp, examples/server/README and routes_openai.cpp.',
  },
  speaches: {
    server: 'speaches, a server for faster-whisper.',
    choices: '',
    usage: 'Audio is billed by its measured length.',
    abort: 'The whole recording is billed.',
    tooLong: 'Long recordings are cut into windows.',
    read: 'speaches-ai/speaches, src/speaches/routers/stt.py.',
  },
  whispercpp: {
    server: "whisper.cpp's server.",
    choices: '',
    usage: 'Audio is billed by its measured length.',
    abort: 'The whole recording is billed.',
    tooLong: 'Long recordings are cut into windows.',
    more: ['Words and segments always come, so `timestamp_granularities` needs no field.'],
    read: 'ggml-org/whisper.cpp, examples/server/server.cpp.',
  },
}

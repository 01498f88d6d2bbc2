import type { EngineKind } from '../../catalog/model.ts'
import type { Dialect } from './dialect.ts'
import { embedded } from './embedded.ts'
import { localai, sdcpp } from './image-servers.ts'
import { infinity } from './infinity.ts'
import { litellm } from './litellm.ts'
import { llamacppPython } from './llamacpp-python.ts'
import { llamacpp } from './llamacpp.ts'
import { nim } from './nim.ts'
import { ollama } from './ollama.ts'
import { openai } from './openai.ts'
import { cohere, jina } from './rerankers.ts'
import { sglang } from './sglang.ts'
import { tei } from './tei.ts'
import { vllm } from './vllm.ts'
import { speaches, whispercpp } from './whisper-servers.ts'

export const dialects: Readonly<Record<EngineKind, Dialect>> = {
  embedded,
  openai,
  vllm,
  sglang,
  llamacpp,
  llamacpp_python: llamacppPython,
  ollama,
  tei,
  infinity,
  nim,
  litellm,
  cohere,
  jina,
  localai,
  sdcpp,
  speaches,
  whispercpp,
}

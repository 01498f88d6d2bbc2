/**
 * The part of an engine's error message that a caller may read. Messages are about the request, but many of them also
 * show how the engine was set up: names of exceptions, files, addresses, settings of a router.
 */

/** Nothing is read beyond this, to bound the work of every pattern. */
const MAX_READ = 4000
const MAX_MESSAGE = 500

/** Everything from here on is about the server: LiteLLM's routing, and stack traces. */
const ends: readonly RegExp[] = [
  /Traceback \(most recent call last\)/,
  /Stack trace:/,
  /\n[ \t]+at \S/,
  /\n[ \t]*File "/,
  /Received Model Group\s*=/,
  /Available Model Group Fallbacks\s*=/,
  /No fallback model group found/,
  /Error doing the fallback/,
  /LiteLLM Retried:/,
  /Deployment Info:/,
  /LiteLLM: model group/,
  /To drop (?:it|them|these) from the call/,
  /Set '?context_window_fallback/,
  /(?:model=[^\s=]+\s+)?(?:context_window_|content_policy_)?fallbacks\s*=/,
]

/**
 * A message inside a message, as Python or JSON writes it: "Error code: 400 - {'error': {'message': 'too long', …" of
 * LiteLLM, "1 validation error: {'type': 'missing', 'loc': ('body', 'input'), 'msg': 'Field required', …" of FastAPI.
 */
const INNER_MESSAGE = /['"](?:message|msg)['"]\s*:\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")/s
/** The object of an inner message opens at most this many characters before it. */
const INNER_START = 200

const LINK = /\bhttps?:\/\/[^\s)]+\)?/i
/** What leads to a link. */
const LEAD =
  /\b(?:please|for (?:more|further) (?:details|information)|more (?:details|information)|see|visit|read|check|refer to|at)$/i
/** The longest lead, and the character before it. */
const LEAD_LENGTH = 'for further information'.length + 1
/** "…, for more information please refer to https://…" */
const MAX_LEADS = 5

const removals: readonly (readonly [pattern: RegExp, replacement: string])[] = [
  // nlohmann's, which llama.cpp uses.
  [/\[json\.exception[^[\]]*\]\s*/g, ''],
  // The names of exceptions, with their modules. \0 stands for one: ValueError('too long') → \0('too long') → too long
  [/(?<!\w)(?<!\w\.)(?:\w+\.)*[A-Z]\w*(?:Error|Exception)\b/g, '\0'],
  [/\0\((?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"),?\)/gs, '$1$2'],
  [/\0\s*(?:[:-]\s*)?/g, ''],
  [/<class '[^']*'>\s*(?:->|:)?\s*/g, ''],
  [/^\s*Error code: \d{3}\s*(?:-\s*)?/g, ''],
  [/\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?\b|\blocalhost:\d+\b/g, '…'],
  // Ollama's full name of a model: registry.ollama.ai/library/smollm2:latest → smollm2:latest
  [/\bregistry\.ollama\.ai\/(?:library\/)?/g, ''],
  [/\bsk-[\w-]{4,}/g, '…'],
  // Absolute paths with two parts or more, and files of code and weights.
  [/(?<![\w./])(?:[A-Za-z]:)?(?:[\\/][\w.+@-]+){2,}(?::\d+)?/g, '…'],
  [/(?<![\w.+@/-])[\w.+@/-]+\.(?:py|cpp|cu|hpp|so|gguf|ggml|safetensors|onnx)\b(?::\d+)?/g, '…'],
]

/** The part of a message that is about the request; empty when there is none. */
export function cleanRefusal(message: string): string {
  let text = innermost(message.slice(0, MAX_READ))
  const starts = ends.map((end) => text.search(end)).filter((start) => start >= 0)
  text = withoutLinks(text.slice(0, Math.min(text.length, ...starts)))
  for (const [pattern, replacement] of removals) text = text.replaceAll(pattern, replacement)
  return text
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/ ([.,;])/g, '$1')
    .trim()
    .replace(/^…:?\s*/, '')
    .replace(/(?<![\s:;,(–-])[\s:;,(–-]+$/, '')
    .slice(0, MAX_MESSAGE)
}

function innermost(text: string): string {
  const inner = INNER_MESSAGE.exec(text)
  if (!inner || !text.slice(Math.max(0, inner.index - INNER_START), inner.index).includes('{')) return text
  return (inner[1] ?? inner[2] ?? '').replaceAll('\\n', '\n').replaceAll(/\\(['"\\])/g, '$1')
}

/** Removes links, and the words that lead to them. */
function withoutLinks(text: string): string {
  const [last = '', ...others] = text.split(LINK).toReversed()
  return others.reduce((after, before) => withoutLead(before) + after, last)
}

function withoutLead(text: string): string {
  let rest = text
  for (let leads = 0; leads < MAX_LEADS; leads++) {
    const before = rest.replace(/(?<![\s,:])[\s,:]+$/, '')
    const lead = LEAD.exec(before.slice(-LEAD_LENGTH))
    if (!lead) break
    rest = before.slice(0, -lead[0].length)
  }
  return rest.replace(/[-–(,;]\s*$/, '')
}

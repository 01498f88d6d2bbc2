/**
 * What a caller may read of an engine's error message. Messages speak about the request, but many of them also show how
 * the engine was set up: names of exceptions, files, addresses, settings of a router.
 */

/** Nothing is read beyond this, so that no pattern has much to search. */
const MAX_READ = 4000
const MAX_MESSAGE = 500

/** Everything from here on is about the server: LiteLLM's routing, and stack traces. */
const END_OF_MESSAGE = new RegExp(
  [
    'Traceback \\(most recent call last\\)',
    'Stack trace:',
    '\\n\\s+at \\S',
    '\\n\\s*File "',
    'Received Model Group\\s*=',
    'Available Model Group Fallbacks\\s*=',
    'No fallback model group found',
    'Error doing the fallback',
    'LiteLLM Retried:',
    'Deployment Info:',
    'LiteLLM: model group',
    'To drop (?:it|them|these) from the call',
    "Set '?context_window_fallback",
    '(?:model=\\S+\\s+)?(?:context_window_|content_policy_)?fallbacks\\s*=',
  ].join('|'),
)

/**
 * A message inside a message, as Python or JSON writes it: "Error code: 400 - {'error': {'message': 'too long', …" of
 * LiteLLM, "1 validation error: {'type': 'missing', 'loc': ('body', 'input'), 'msg': 'Field required', …" of FastAPI.
 */
const INNER_MESSAGE = /\{.{0,200}?['"](?:message|msg)['"]\s*:\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")/s

const EXCEPTION = '(?:[a-z_]\\w*\\.)*[A-Z]\\w*(?:Error|Exception)'

const removals: readonly (readonly [pattern: RegExp, replacement: string])[] = [
  // nlohmann's, which llama.cpp uses.
  [/\[json\.exception[^\]]*\]\s*/g, ''],
  // ValueError('too long') → too long
  [new RegExp(`\\b${EXCEPTION}\\((['"])(.*?)\\1,?\\)`, 'gs'), '$2'],
  [new RegExp(`<class '[^']*'>\\s*(?:->|:)?\\s*|\\b${EXCEPTION}\\b(?:\\s*(?::|-)\\s*|\\s*)`, 'g'), ''],
  [/^\s*Error code: \d{3}\s*(?:-\s*)?/g, ''],
  // A link, and the words that lead to it.
  [
    /(?:[-–(,;]\s*)?(?:\b(?:please|for (?:more|further) (?:details|information)|more (?:details|information)|see|visit|read|check|refer to|at)\b[\s,:]*){0,5}\bhttps?:\/\/[^\s)]+\)?/gi,
    '',
  ],
  [/\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?\b|\blocalhost:\d+\b/g, '…'],
  // Ollama's full name of a model: registry.ollama.ai/library/smollm2:latest → smollm2:latest
  [/\bregistry\.ollama\.ai\/(?:library\/)?/g, ''],
  [/\bsk-[\w-]{4,}/g, '…'],
  // Absolute paths with two parts or more, and files of code and weights.
  [/(?<![\w./])(?:[A-Za-z]:)?(?:[\\/][\w.+@-]+){2,}(?::\d+)?/g, '…'],
  [/[\w.+@/-]+\.(?:py|cpp|cu|hpp|so|gguf|ggml|safetensors|onnx)\b(?::\d+)?/g, '…'],
]

/** The part of a message that is about the request; empty when there is none. */
export function cleanRefusal(message: string): string {
  let text = message.slice(0, MAX_READ)
  const inner = INNER_MESSAGE.exec(text)
  if (inner) text = (inner[1] ?? inner[2] ?? '').replaceAll('\\n', '\n').replaceAll(/\\(['"\\])/g, '$1')
  const end = text.search(END_OF_MESSAGE)
  if (end >= 0) text = text.slice(0, end)
  for (const [pattern, replacement] of removals) text = text.replaceAll(pattern, replacement)
  return text
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/ ([.,;])/g, '$1')
    .replaceAll(/^\s*…:?\s*|[\s:;,(–-]+$/g, '')
    .trim()
    .slice(0, MAX_MESSAGE)
}

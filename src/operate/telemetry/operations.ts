/** What OpenTelemetry calls the operation of an endpoint. It has no names for the last ones. */
export const operations: Readonly<Record<string, string>> = {
  '/chat/completions': 'chat',
  '/responses': 'chat',
  '/messages': 'chat',
  '/completions': 'text_completion',
  '/embeddings': 'embeddings',
  '/images/generations': 'generate_content',
  '/rerank': 'rerank',
  '/reranking': 'rerank',
  '/audio/transcriptions': 'transcription',
  '/audio/translations': 'translation',
}

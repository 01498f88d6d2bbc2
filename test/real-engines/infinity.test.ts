import { describeEmbeddings } from './embeddings-suite.ts'
import { missing, startEngine } from './engine-process.ts'

const options = 'v2 --engine debugengine --model-id debug/model --no-model-warmup --host 127.0.0.1'.split(' ')

/** Its debug engine needs no weights: a vector holds the length of its text. */
describeEmbeddings({
  title: 'infinity, embeddings',
  skip: missing('infinity/bin/infinity_emb'),
  kind: 'infinity',
  base: '',
  model: 'debug/model',
  miscounts: 'it counts characters',
  start: () =>
    startEngine({
      program: 'infinity/bin/infinity_emb',
      args: (port) => [...options, '--port', String(port)],
      environment: () => ({ DO_NOT_TRACK: '1', HF_HUB_OFFLINE: '1' }),
      readyPath: '/health',
    }),
})

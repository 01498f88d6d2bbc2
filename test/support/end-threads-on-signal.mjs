import { Worker } from 'node:worker_threads'

/** Preloaded into a service (`--import`): SIGUSR2 ends every thread that it has started, as a crash of the thread would. */
const started = new Set()
const post = Worker.prototype.postMessage
Worker.prototype.postMessage = function (...message) {
  started.add(this)
  return post.apply(this, message)
}
process.on('SIGUSR2', () => {
  for (const worker of started) void worker.terminate()
  started.clear()
})

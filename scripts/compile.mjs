// Compiles the service into the cache that bootstrap.mjs names. A process that finds everything there never loads the
// compiler, which every thread would load for itself. That saves a quarter of the memory.
await import('../src/store/sqlite/worker.ts').catch(() => {
  // It fails here, since it only runs on a thread of the service. It is compiled nevertheless.
})
await import('../src/inference/routes/prepare-worker.ts')
process.argv.splice(2, Infinity, 'help')
await import('../src/main.ts')

// Compiles the service into the cache that bootstrap.mjs names. A process that finds all of it there never
// loads the compiler, of which each thread would have its own: it takes a quarter less memory.
await import('../src/store/sqlite/worker.ts').catch(() => {
  // It runs on a thread of the service only.
})
process.argv.splice(2, Infinity, 'help')
await import('../src/main.ts')

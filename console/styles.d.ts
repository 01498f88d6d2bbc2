/** Styles are bundled by scripts/build-console.mjs. */
declare module '*.css'

/** An image as text: scripts/build-console.mjs puts it into the bundle. */
declare module '*.svg' {
  const text: string
  export default text
}

/** A smaller body may be part of a pool of memory, which cannot be handed over. */
const COPIED_BYTES = 65_536

/** Bytes whose memory can be handed over to another thread. Only a few are copied for that. */
export function movable(bytes: Buffer): Uint8Array<ArrayBuffer> {
  return bytes.length > COPIED_BYTES ? (bytes as Buffer<ArrayBuffer>) : new Uint8Array(bytes)
}

/** Bytes that come from another thread. */
export function movedBuffer({ buffer, byteOffset, length }: Uint8Array): Buffer {
  return Buffer.from(buffer as ArrayBuffer, byteOffset, length)
}

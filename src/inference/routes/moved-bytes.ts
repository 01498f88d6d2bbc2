/** A smaller body may be part of a memory pool, which cannot be transferred. */
const COPIED_BYTES = 65_536

/** Bytes whose memory can be transferred to another thread. Only small ones are copied for that. */
export function movable(bytes: Buffer): Uint8Array<ArrayBuffer> {
  return bytes.length > COPIED_BYTES ? (bytes as Buffer<ArrayBuffer>) : new Uint8Array(bytes)
}

/** Bytes that were transferred from another thread. */
export function movedBuffer({ buffer, byteOffset, length }: Uint8Array): Buffer {
  return Buffer.from(buffer as ArrayBuffer, byteOffset, length)
}

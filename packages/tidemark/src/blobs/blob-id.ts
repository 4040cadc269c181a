import { createHash } from 'node:crypto'

/** SHA-256 in hexadecimal. */
export function blobId(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

export function isBlobId(id: string): boolean {
  return /^[0-9a-f]{64}$/.test(id)
}

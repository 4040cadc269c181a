import { createHash } from 'node:crypto'
import { isUint8Array } from 'node:util/types'
import { TidemarkError } from '@tidemark/core'
import { show } from '../home/show.ts'

/** SHA-256 in hexadecimal. */
export function blobId(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

export function isBlobId(id: string): boolean {
  return /^[0-9a-f]{64}$/.test(id)
}

/** A copy of what was handed in, which may change later. */
export function blobBytes(given: Uint8Array): Uint8Array {
  if (isUint8Array(given)) return Uint8Array.from(given)
  const message = `A blob is a Uint8Array, and ${show(given)} is none. Give bytes: of a text, new TextEncoder().encode(text).`
  throw new TidemarkError('bad-blob', message)
}

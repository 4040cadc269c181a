/** Hashes, for chains of blocks and for signatures. Short enough to be keys, long enough not to meet. */
import { createHmac, hash } from 'node:crypto'

export function digest(text: string): string {
  return hash('sha256', text, 'base64url').slice(0, 22)
}

export function keyedDigest(key: string, text: string): string {
  return createHmac('sha256', key).update(text).digest('base64url')
}

import type { BlobStore } from '@tidemark/core'
import { blobBytes, blobId } from '../blobs/blob-id.ts'

/** Blobs in memory, under the ids that the folder gives them. */
export function createMemoryBlobs(): BlobStore {
  const blobs = new Map<string, Uint8Array>()
  return {
    async put(given) {
      const bytes = blobBytes(given)
      const id = blobId(bytes)
      blobs.set(id, bytes)
      return id
    },
    async get(id) {
      const bytes = blobs.get(id)
      return bytes === undefined ? null : Uint8Array.from(bytes)
    },
    has: async (id) => blobs.has(id),
  }
}

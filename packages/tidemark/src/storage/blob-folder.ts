/**
 * Stores blobs in files that are named after the hash of their content, in subfolders named after the first two digits
 * of the hash.
 */

import { createHash } from 'node:crypto'
import { dirname, join } from 'node:path'
import { isUint8Array } from 'node:util/types'
import type { BlobStore, Clock } from '@tidemark/core/engine/ports'
import { TidemarkError } from '@tidemark/core/errors'
import { formatErrorValue } from '@tidemark/core/policy/policy-fields'
import { systemClock } from '../platform/node-ports.ts'
import { readFileSnapshot, removeStaleDrafts, replaceFileAtomic } from './atomic-file.ts'
import {
  ensureDirectory,
  type FileSystem,
  ioError,
  nodeFileSystem,
  syncDirectoryNames,
} from './file-system.ts'
import { blobsFolder, resolveHome } from './home-paths.ts'

interface BlobFolderOptions {
  /** Absolute path of the Tidemark home folder. Default: `tidemarkHome()`. */
  readonly home?: string
  readonly files?: FileSystem
  readonly clock?: Clock
}

/** Creates a blob store in the Tidemark home. Each blob's hash is checked when the blob is read. */
export function createBlobFolder(options: BlobFolderOptions = {}): BlobStore {
  const { files = nodeFileSystem, clock = systemClock, home } = options
  const store: Store = { files, clock, home: resolveHome(home), prepared: new Set() }
  return {
    put: (bytes) => putBlob(store, bytes),
    get: (id) => getBlob(store, id),
    has: async (id) =>
      isBlobId(id) &&
      (await withBlobErrors('look for', id, files.facts(toBlobPath(store.home, id)))) !== null,
  }
}

interface Store {
  readonly files: FileSystem
  readonly clock: Clock
  readonly home: string
  /** Subfolders that this store has already synced to disk and cleaned of old draft files. */
  readonly prepared: Set<string>
}

async function putBlob(store: Store, given: Uint8Array): Promise<string> {
  const bytes = copyBlobBytes(given)
  const id = computeBlobId(bytes)
  await withBlobErrors('store', id, writeBlob(store, id, bytes))
  return id
}

/**
 * Writes a blob unless an intact copy exists. Always syncs the folder, because an earlier writer may have crashed
 * before it did.
 */
async function writeBlob(store: Store, id: string, bytes: Uint8Array): Promise<void> {
  const { files } = store
  const path = toBlobPath(store.home, id)
  await prepareFolder(store, dirname(path))
  const existing = await readFileSnapshot(files, path)
  if (existing === null || computeBlobId(existing.bytes) !== id)
    await replaceFileAtomic(files, path, { bytes, durable: true })
  await files.syncDirectory(dirname(path))
}

async function prepareFolder({ files, clock, home, prepared }: Store, folder: string): Promise<void> {
  await ensureDirectory(files, folder)
  if (prepared.has(folder)) return
  await syncDirectoryNames(files, folder, home)
  await removeStaleDrafts(files, folder, clock.now())
  prepared.add(folder)
}

async function getBlob(store: Store, id: string): Promise<Uint8Array | null> {
  if (!isBlobId(id)) return null
  const file = await withBlobErrors('read', id, readFileSnapshot(store.files, toBlobPath(store.home, id)))
  if (file === null || computeBlobId(file.bytes) === id) return file?.bytes ?? null
  const message = `Blob ${id} is damaged: its content does not match its id. Store the same content again to repair it.`
  throw new TidemarkError('io-failed', message, { details: { id } })
}

/** Returns the path of a blob in a Tidemark home. */
export function toBlobPath(home: string, id: string): string {
  return join(blobsFolder(home), id.slice(0, 2), id)
}

async function withBlobErrors<T>(what: string, id: string, outcome: Promise<T>): Promise<T> {
  return outcome.catch((error: unknown) => Promise.reject(ioError(`${what} blob ${id}`, error, { id })))
}

/** Returns the id of a blob: the SHA-256 hash of its content in hexadecimal. */
export function computeBlobId(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

function isBlobId(id: string): boolean {
  return /^[0-9a-f]{64}$/.test(id)
}

/** Returns a copy of the bytes, since the caller may change them later. Throws `bad-blob` if not given a Uint8Array. */
export function copyBlobBytes(given: Uint8Array): Uint8Array {
  if (isUint8Array(given)) return Uint8Array.from(given)
  const message = `A blob must be a Uint8Array, found ${formatErrorValue(given)}. For text, give new TextEncoder().encode(text).`
  throw new TidemarkError('bad-blob', message)
}

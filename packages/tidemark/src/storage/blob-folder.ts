/** Blobs in files named after what they hold, a folder for every first two digits. */

import { createHash } from 'node:crypto'
import { dirname, join } from 'node:path'
import { isUint8Array } from 'node:util/types'
import { type BlobStore, type Clock, TidemarkError } from '@tidemark/core'
import { show } from '../platform/argument-errors.ts'
import { systemClock } from '../platform/node-ports.ts'
import { readWhole, replaceWhole, sweepDrafts } from './atomic-file.ts'
import { ensureDirectory, type FilePort, ioFailed, nodeFiles, syncNames } from './file-system.ts'
import { blobsFolder, homeOr } from './paths.ts'

export interface BlobFolderOptions {
  /** An absolute path; `tidemarkHome()` unless given. */
  readonly home?: string
  readonly files?: FilePort
  readonly clock?: Clock
}

/** A blob is on the disk, whole, before it has its name, and is checked whenever it is read. */
export function createBlobFolder(options: BlobFolderOptions = {}): BlobStore {
  const { files = nodeFiles, clock = systemClock, home } = options
  const place: Place = { files, clock, home: homeOr(home), prepared: new Set() }
  return {
    put: (bytes) => put(place, bytes),
    get: (id) => get(place, id),
    has: async (id) =>
      isBlobId(id) && (await naming('look for', id, files.facts(pathOf(place, id)))) !== null,
  }
}

interface Place {
  readonly files: FilePort
  readonly clock: Clock
  readonly home: string
  /** Folders whose names this store has made durable, and in which it has swept. */
  readonly prepared: Set<string>
}

async function put(place: Place, given: Uint8Array): Promise<string> {
  const bytes = blobBytes(given)
  const id = blobId(bytes)
  await naming('store', id, store(place, id, bytes))
  return id
}

/** What is there already is left if it is what it says. Its name may be a crashed writer's, so it is synced too. */
async function store(place: Place, id: string, bytes: Uint8Array): Promise<void> {
  const { files } = place
  const path = pathOf(place, id)
  await prepare(place, dirname(path))
  const there = await readWhole(files, path)
  if (there === null || blobId(there.bytes) !== id) await replaceWhole(files, path, { bytes, durable: true })
  await files.syncDirectory(dirname(path))
}

async function prepare({ files, clock, home, prepared }: Place, folder: string): Promise<void> {
  await ensureDirectory(files, folder)
  if (prepared.has(folder)) return
  await syncNames(files, folder, home)
  await sweepDrafts(files, folder, clock.now())
  prepared.add(folder)
}

async function get(place: Place, id: string): Promise<Uint8Array | null> {
  if (!isBlobId(id)) return null
  const file = await naming('read', id, readWhole(place.files, pathOf(place, id)))
  if (file === null || blobId(file.bytes) === id) return file?.bytes ?? null
  const message = `Blob ${id} is damaged: its content is no longer what its id says. Store the same content again to mend it.`
  throw new TidemarkError('io-failed', message, { details: { id } })
}

function pathOf({ home }: Place, id: string): string {
  return join(blobsFolder(home), id.slice(0, 2), id)
}

async function naming<T>(what: string, id: string, outcome: Promise<T>): Promise<T> {
  return outcome.catch((error: unknown) => Promise.reject(ioFailed(`${what} blob ${id}`, error, { id })))
}

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

/** Blobs in files named after what they hold, a folder for every first two digits. */
import { dirname, join } from 'node:path'
import { type BlobStore, type Clock, TidemarkError } from '@tidemark/core'
import { ensureDirectory, syncNames } from '../files/directories.ts'
import { sweepDrafts } from '../files/drafts.ts'
import type { FilePort } from '../files/file-port.ts'
import { ioFailed } from '../files/io-failed.ts'
import { nodeFiles } from '../files/node-files.ts'
import { readWhole, replaceWhole } from '../files/whole-file.ts'
import { homeOr } from '../home/home.ts'
import { blobsFolder } from '../home/session-paths.ts'
import { systemClock } from '../system/system-clock.ts'
import { blobBytes, blobId, isBlobId } from './blob-id.ts'

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

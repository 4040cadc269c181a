/**
 * Stores log lines and blobs above 256 KB in an S3-compatible store. Each object is registered in `gateway_objects` before it is
 * stored, and stored before the row that refers to it: after a crash, no line lacks its object, and no object is forgotten.
 */
import { createHash, randomUUID } from 'node:crypto'
import { TidemarkError } from '@tidemark/core/errors'
import type { Database } from './database.ts'
import type { ObjectStore } from './object-store.ts'

/** Lines and blobs with more bytes than this are stored as objects. */
export const OBJECT_THRESHOLD_BYTES = 256 * 1024

/** The text that a row has in place of a large line begins with this. It is not JSON, so no reader can take it for a record. */
const MARK = 'tidemark-object '
/** Characters of a large line that its row keeps: the search for the last tool calls of a conversation reads rows. */
const HEAD_LENGTH = 600

interface StoredObject {
  readonly name: string
  readonly sha256: string
}

/** Converts between the lines of a log and the texts of its rows. */
interface LineTexts {
  toStored(session: string, lines: readonly string[]): Promise<readonly string[]>
  fromStored(texts: readonly string[]): Promise<readonly string[]>
}

/**
 * Creates the conversion between log lines and texts of rows. `objects`: null if no store is configured. Lines then stay in their
 * rows, and reading one that is in a store throws `io-failed`.
 */
export function createLineConverter(
  pool: Pick<Database, 'query'>,
  scope: string,
  objects: ObjectStore | null,
): LineTexts {
  async function toRow(session: string, line: string): Promise<string> {
    if (objects === null || Buffer.byteLength(line) <= OBJECT_THRESHOLD_BYTES) return line
    const object = await storeObject(pool, objects, { scope, session, bytes: Buffer.from(line) })
    // Blobs are deleted with the last session whose rows have their ids.
    const ids = new Set(line.slice(HEAD_LENGTH).match(/\b[0-9a-f]{64}\b/g))
    return [`${MARK}${JSON.stringify(object)}`, line.slice(0, HEAD_LENGTH), ...ids].join('\n')
  }
  return {
    toStored: (session, lines) => Promise.all(lines.map((line) => toRow(session, line))),
    async fromStored(texts) {
      if (!texts.some((text) => text.startsWith(MARK))) return texts
      const lines: string[] = []
      // Loaded one after the other, because each may have several megabytes.
      for (const text of texts) lines.push(text.startsWith(MARK) ? await readLine(objects, text) : text)
      return lines
    },
  }
}

async function readLine(objects: ObjectStore | null, text: string): Promise<string> {
  const object = JSON.parse(text.slice(MARK.length, text.indexOf('\n'))) as StoredObject
  if (objects === null)
    throw new TidemarkError(
      'io-failed',
      'A line of the log is in an object store: start the gateway with --objects.',
    )
  return Buffer.from(await loadObject(objects, object)).toString()
}

/** Stores bytes under a new name, after adding a row for them. `session`: null for a blob, which belongs to its own row. */
export async function storeObject(
  pool: Pick<Database, 'query'>,
  objects: ObjectStore,
  {
    scope,
    session,
    bytes,
  }: { readonly scope: string; readonly session: string | null; readonly bytes: Uint8Array },
): Promise<StoredObject> {
  const name = `${scope}/${randomUUID()}`
  await pool.query('insert into gateway_objects (name, scope, session, bytes) values ($1, $2, $3, $4)', [
    name,
    scope,
    session,
    bytes.byteLength,
  ])
  await objects.put(name, bytes)
  return { name, sha256: hash(bytes) }
}

/** Returns the bytes of an object. Throws `io-failed` if it is missing or its hash is not that of the stored bytes. */
export async function loadObject(objects: ObjectStore, { name, sha256 }: StoredObject): Promise<Uint8Array> {
  const bytes = await objects.get(name)
  if (bytes !== null && hash(bytes) === sha256) return bytes
  const what = bytes === null ? 'is missing in the object store' : 'is not what was stored'
  throw new TidemarkError('io-failed', `The object ${name} ${what}.`)
}

function hash(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/** Maximum objects that one job deletes. */
const BATCH = 500

/**
 * Deletes objects of deleted sessions and blobs, and those older than an hour whose session or blob was never stored. Each row
 * goes after its object, so an interrupted deletion is repeated. Returns their number, at most `BATCH`.
 */
export async function deleteUnusedObjects(pool: Database, objects: ObjectStore): Promise<number> {
  const { rows } = await pool.query<{ name: string }>(
    `select name from gateway_objects o where deleted_at is not null or (created_at < now() - interval '1 hour'
       and not exists (select 1 from gateway_sessions s where s.scope = o.scope and s.session = o.session)
       and not exists (select 1 from gateway_blobs b where b.scope = o.scope and b.object = o.name))
     order by created_at limit $1`,
    [BATCH],
  )
  for (const { name } of rows) {
    await objects.delete(name)
    await pool.query('delete from gateway_objects where name = $1', [name])
  }
  return rows.length
}

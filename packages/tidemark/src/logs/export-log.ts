/** A session's file as Markdown: written to a new file as it is made, or handed on piece by piece. */
import { type BlobReader, markdownPieces, redact, sessionOf } from '@tidemark/core'
import { createNewFile } from '../storage/atomic-file.ts'
import { createBlobFolder } from '../storage/blob-folder.ts'
import { type FilePort, nodeFiles } from '../storage/file-system.ts'
import type { LogRefusal } from './found-log.ts'
import { readLog } from './read-session.ts'

export interface ExportLogOptions {
  /** Credentials are taken out unless this is false. */
  readonly redacts?: boolean
  /** Where large results were put aside; the blobs of `home` unless given. Null leaves head and tail. */
  readonly blobs?: BlobReader | null
  readonly home?: string
  readonly title?: string
}

export interface ExportedLog {
  readonly ok: true
  readonly records: number
  readonly pieces: AsyncIterable<string>
}

/** The conversation of any log that can be read: ours, Claude Code's, Codex's. */
export async function exportLog(
  path: string,
  options: ExportLogOptions = {},
): Promise<ExportedLog | LogRefusal> {
  const log = await readLog(path, { withAgents: false })
  if (!log.ok) return log
  const session = sessionOf(log.records.map(({ record }) => record))
  const { redacts = true, title, blobs = blobsOf(options) } = options
  const pieces = markdownPieces(session, {
    ...{ blobs, redact: redacts ? redact : (text: string) => text },
    ...(title === undefined ? {} : { title }),
  })
  return { ok: true, records: session.records.length, pieces }
}

/** A blob that cannot be read leaves the head and tail that the record shows. */
function blobsOf({ home }: ExportLogOptions): BlobReader {
  const store = createBlobFolder(home === undefined ? {} : { home })
  return { get: (id) => store.get(id).catch(() => null) }
}

export type ExportOutcome =
  | { readonly ok: true; readonly path: string; readonly out: string; readonly records: number }
  | { readonly ok: false; readonly path: string; readonly message: string }

/** `out` must not be there yet. It is there whole or not at all. */
export async function exportToFile(
  path: string,
  out: string,
  options: ExportLogOptions & { readonly files?: FilePort } = {},
): Promise<ExportOutcome> {
  const { files = nodeFiles } = options
  if ((await files.facts(out)) !== null) return taken(out)
  const log = await exportLog(path, options)
  if (!log.ok) return log
  const file = await createNewFile(files, out)
  try {
    for await (const piece of log.pieces) await file.write(piece)
    return (await file.commit()) ? { ok: true, path, out, records: log.records } : taken(out)
  } finally {
    await file.discard()
  }
}

function taken(out: string): ExportOutcome & { readonly ok: false } {
  const message = `${out} is there already, and nothing is ever overwritten: choose another name.`
  return { ok: false, path: out, message }
}

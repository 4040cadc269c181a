/** A session's log as Markdown: returned piece by piece, or written to a new file. */
import { type BlobReader, buildSessionLog, redact, streamMarkdown } from '@tidemark/core'
import { omitUndefined } from '@tidemark/wire'
import { createNewFile } from '../storage/atomic-file.ts'
import { createBlobFolder } from '../storage/blob-folder.ts'
import { type FileSystem, nodeFileSystem } from '../storage/file-system.ts'
import { fileExistsMessage, type LogRefusal } from './found-log.ts'
import { readLog } from './read-session.ts'

export interface ExportLogOptions {
  /** Whether credentials are removed. Default: true. */
  readonly redacts?: boolean
  /** Where large results were stored. Default: the blobs of `home`. Null: only their head and tail are exported. */
  readonly blobs?: BlobReader | null
  readonly home?: string
  readonly title?: string
}

export interface MarkdownExport {
  readonly ok: true
  readonly records: number
  readonly pieces: AsyncIterable<string>
}

/** The conversation of a log of Tidemark, Claude Code or Codex. */
export async function exportLog(
  path: string,
  options: ExportLogOptions = {},
): Promise<MarkdownExport | LogRefusal> {
  const log = await readLog(path, { withAgents: false })
  if (!log.ok) return log
  const session = buildSessionLog(log.records.map(({ record }) => record))
  const { redacts = true, title, home, blobs = openBlobs(home) } = options
  const pieces = streamMarkdown(session, {
    blobs,
    redact: redacts ? redact : (text: string) => text,
    ...omitUndefined({ title }),
  })
  return { ok: true, records: session.records.length, pieces }
}

/** For a blob that cannot be read, the head and tail in the record are exported. */
function openBlobs(home: string | undefined): BlobReader {
  const store = createBlobFolder(omitUndefined({ home }))
  return { get: (id) => store.get(id).catch(() => null) }
}

export type ExportOutcome =
  | { readonly ok: true; readonly path: string; readonly out: string; readonly records: number }
  | { readonly ok: false; readonly path: string; readonly message: string }

/** `out` must not exist. Afterwards it is complete or absent. */
export async function exportLogToFile(
  path: string,
  out: string,
  options: ExportLogOptions & { readonly files?: FileSystem } = {},
): Promise<ExportOutcome> {
  const { files = nodeFileSystem } = options
  if ((await files.facts(out)) !== null) return refuseExisting(out)
  const log = await exportLog(path, options)
  if (!log.ok) return log
  const file = await createNewFile(files, out)
  try {
    for await (const piece of log.pieces) await file.write(piece)
    return (await file.commit()) ? { ok: true, path, out, records: log.records } : refuseExisting(out)
  } finally {
    await file.discard()
  }
}

function refuseExisting(out: string): ExportOutcome {
  return { ok: false, path: out, message: fileExistsMessage(out) }
}

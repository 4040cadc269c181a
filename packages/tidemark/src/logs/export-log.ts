/** Exports a session's log as Markdown, piece by piece or to a new file. */
import { streamMarkdown } from '@tidemark/core/history/export-markdown'
import type { BlobReader } from '@tidemark/core/history/spill-results'
import { omitUndefined } from '@tidemark/core/log/json'
import { buildSessionLog } from '@tidemark/core/log/session-log'
import { redact } from '@tidemark/core/text/redact'
import { createDraftFile } from '../storage/atomic-file.ts'
import { type FileSystem, nodeFileSystem } from '../storage/file-system.ts'
import { listBlobIds, openLogBlobs } from './log-blobs.ts'
import { formatFileExists, type LogRefusal } from './read-lines.ts'
import { readLog } from './read-log.ts'

interface ExportLogOptions {
  /** Removes credentials from the export. Default: true. */
  readonly redacts?: boolean
  /**
   * The store of large tool results. Default: the blobs beside the log, if it lies in `HOME/sessions`, then those under
   * `home`. Null: only the head and tail of large results are exported.
   */
  readonly blobs?: BlobReader | null
  readonly home?: string
  readonly title?: string
}

interface MarkdownExport {
  readonly ok: true
  readonly records: number
  /** Ids of the large results that could not be read. The export has only their head and tail, and says so. */
  readonly missingBlobs: readonly string[]
  readonly pieces: AsyncIterable<string>
}

/**
 * Exports the conversation of a Tidemark, Claude Code or Codex log as Markdown, piece by piece. Subagents are not
 * included. Returns a refusal if the log cannot be read.
 */
export async function exportLog(
  path: string,
  options: ExportLogOptions = {},
): Promise<MarkdownExport | LogRefusal> {
  const log = await readLog(path, { withAgents: false })
  if (!log.ok) return log
  const session = buildSessionLog(log.records.map(({ record }) => record))
  const { redacts = true, title, home, blobs = openLogBlobs(path, home) } = options
  const pieces = streamMarkdown(session, {
    blobs,
    redact: redacts ? redact : (text: string) => text,
    ...omitUndefined({ title }),
  })
  const missingBlobs = blobs === null ? [] : await findMissingBlobs(listBlobIds(session.records), blobs)
  return { ok: true, records: session.records.length, missingBlobs, pieces: showControls(pieces) }
}

async function findMissingBlobs(ids: readonly string[], blobs: BlobReader): Promise<readonly string[]> {
  const missing: string[] = []
  for (const id of ids) if ((await blobs.get(id)) === null) missing.push(id)
  return missing
}

/**
 * Replaces control characters, which a terminal would execute, by visible symbols (`␛`), and characters that change the
 * direction of text by U+FFFD. Line ends and tabs stay.
 */
async function* showControls(pieces: AsyncIterable<string>): AsyncIterable<string> {
  for await (const piece of pieces)
    yield piece
      // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is replaced
      .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]|\r(?!\n)/g, (control) =>
        String.fromCharCode(CONTROL_SYMBOLS + control.charCodeAt(0)),
      )
      .replace(/\u007f/g, '\u2421')
      .replace(/[\u0080-\u009f\u202a-\u202e\u2066-\u2069]/g, '\ufffd')
}

/** Code of the symbol for the control character 0 in Unicode; the symbols of the others follow in their order. */
const CONTROL_SYMBOLS = 0x2400

type ExportOutcome =
  | (Pick<MarkdownExport, 'ok' | 'records' | 'missingBlobs'> & {
      readonly path: string
      readonly out: string
    })
  | { readonly ok: false; readonly path: string; readonly message: string }

/**
 * Writes the Markdown export to `out`. Not ok if `out` exists or the log cannot be read. The file is written completely
 * or not at all.
 */
export async function exportLogToFile(
  path: string,
  out: string,
  options: ExportLogOptions & { readonly files?: FileSystem } = {},
): Promise<ExportOutcome> {
  const { files = nodeFileSystem } = options
  if ((await files.facts(out)) !== null) return refuseExisting(out)
  const log = await exportLog(path, options)
  if (!log.ok) return log
  const file = await createDraftFile(files, out)
  try {
    for await (const piece of log.pieces) await file.write(piece)
    const { records, missingBlobs } = log
    return (await file.commit()) ? { ok: true, path, out, records, missingBlobs } : refuseExisting(out)
  } finally {
    await file.discard()
  }
}

function refuseExisting(out: string): ExportOutcome {
  return { ok: false, path: out, message: formatFileExists(out) }
}

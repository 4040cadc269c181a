/** Exports a session's log as Markdown, piece by piece or to a new file. */
import { type BlobReader, buildSessionLog, redact, streamMarkdown } from '@tidemark/core'
import { omitUndefined } from '@tidemark/wire'
import { createDraftFile } from '../storage/atomic-file.ts'
import { createBlobFolder } from '../storage/blob-folder.ts'
import { type FileSystem, nodeFileSystem } from '../storage/file-system.ts'
import { formatFileExists, type LogRefusal } from './log-search-result.ts'
import { readLog } from './read-log.ts'

export interface ExportLogOptions {
  /** Removes credentials from the export. Default: true. */
  readonly redacts?: boolean
  /**
   * The store of large tool results. Default: the blobs under `home`. Null: only the head and tail of large results are
   * exported.
   */
  readonly blobs?: BlobReader | null
  readonly home?: string
  readonly title?: string
}

export interface MarkdownExport {
  readonly ok: true
  readonly records: number
  readonly pieces: AsyncIterable<string>
}

/** Exports the conversation of a Tidemark, Claude Code or Codex log as Markdown. Subagents are not included. */
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
  return { ok: true, records: session.records.length, pieces: showControls(pieces) }
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

/**
 * Opens the store of large tool results. If a result cannot be read from it, the export contains the head and tail that
 * the log has.
 */
function openBlobs(home: string | undefined): BlobReader {
  const store = createBlobFolder(omitUndefined({ home }))
  return { get: (id) => store.get(id).catch(() => null) }
}

export type ExportOutcome =
  | { readonly ok: true; readonly path: string; readonly out: string; readonly records: number }
  | { readonly ok: false; readonly path: string; readonly message: string }

/** Writes the Markdown export to `out`, which must not exist. The file is written completely or not at all. */
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
    return (await file.commit()) ? { ok: true, path, out, records: log.records } : refuseExisting(out)
  } finally {
    await file.discard()
  }
}

function refuseExisting(out: string): ExportOutcome {
  return { ok: false, path: out, message: formatFileExists(out) }
}

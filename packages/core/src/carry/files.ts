/**
 * Files the work turned on: those touched last, read again from disk, so that what the model sees is what is there
 * now. One that cannot be read is skipped and told, never fatal.
 */
import type { Carrier, CarryContext, Offer } from './carrier.ts'
import { endsIn, plainPath } from './path.ts'
import { shownFiles, touchesOf } from './touched-files.ts'

export type FileRead =
  | {
      readonly ok: true
      readonly text: string
      /** Bytes of the whole file, of which `text` is the beginning where it is larger than was asked for. */
      readonly bytes: number
      readonly isWhole: boolean
      /** Where it really lies, links followed: two names of one file are one file. */
      readonly realPath: string
    }
  | { readonly ok: false; readonly why: string }

/** What reads the disk. Of a large file no more than `limitBytes` need be read. */
export interface FileReader {
  read(path: string, limitBytes: number): Promise<FileRead>
}

export interface FilesOptions {
  readonly reader: FileReader
  /** What relative paths start from. */
  readonly folder?: string
  /** The host's own read state, newest first; unless given, the records tell. */
  readonly recent?: () => readonly string[]
  /** Files that are never brought: the transcript, the plan file, the host's own. */
  readonly never?: () => readonly string[]
  /** Tells an answer that points at an earlier one from one that has the content. */
  readonly isStub?: (text: string) => boolean
}

/** More bytes than this to a token are rare; the cut is made by tokens afterwards. */
const BYTES_PER_TOKEN = 24

/** A session from another machine may name thousands of files that are not here. */
const MOST_TRIES = 100

export function filesCarrier(options: FilesOptions): Carrier {
  return {
    name: 'files',
    kind: 'files',
    tellsChanges: false,
    isWhole: false,
    limit: ({ budgets, policy }) => ({ ...budgets.files, count: policy.rehydrate.files.count }),
    render: (context) => renderFiles(options, context),
  }
}

async function* renderFiles(options: FilesOptions, context: CarryContext): AsyncGenerator<Offer> {
  const { budgets, policy } = context
  const seen = new Set<string>()
  let tries = 0
  const isNever = neverOf(options, policy.memoryFiles)
  for (const path of candidates(options, context)) {
    if (isNever(path)) continue
    tries += 1
    if (tries > MOST_TRIES) return
    const read = await options.reader.read(path, budgets.files.each * BYTES_PER_TOKEN)
    if (!read.ok) yield { id: path, why: read.why }
    else if (!seen.has(read.realPath) && !isNever(read.realPath)) {
      seen.add(read.realPath)
      yield offerOf(path, read)
    }
  }
}

/** Newest first, each once, less what the kept messages show. */
function candidates(options: FilesOptions, { session, kept, policy }: CarryContext): ReadonlySet<string> {
  const { folder = null, recent, isStub = isUnchangedStub } = options
  const touches = touchesOf(session, policy.rehydrate.files, folder)
  const shown = shownFiles(touches, [...kept], isStub)
  const paths = recent?.().map((path) => plainPath(path, folder)) ?? touches.map(({ path }) => path)
  return new Set(paths.filter((path) => !shown.has(path)))
}

/** The words with which a read is answered whose content stands further up. */
export function isUnchangedStub(text: string): boolean {
  return /^\s*(<system-reminder>\s*)?(FILE_UNCHANGED|File unchanged since last read)/i.test(text)
}

function neverOf(
  { never, folder }: FilesOptions,
  memory: { readonly names: readonly string[]; readonly rules: readonly string[] },
): (path: string) => boolean {
  const own = new Set((never?.() ?? []).map((path) => plainPath(path, folder)))
  return (path) =>
    own.has(plainPath(path, folder)) || [...memory.names, ...memory.rules].some((name) => endsIn(path, name))
}

function offerOf(path: string, { text, bytes, isWhole }: FileRead & { readonly ok: true }): Offer {
  const cutNote = (shown: string): string =>
    `[cut: ${shown.length} characters are shown of a file of ${bytes} bytes; read the file for the rest]`
  const content = isWhole ? text : `${text}\n${cutNote(text)}`
  const attachment = { type: 'file', filename: path, content, ...(isWhole ? {} : { truncated: true }) }
  return { id: path, attachment, source: path, sheddable: 'files', cutNote }
}

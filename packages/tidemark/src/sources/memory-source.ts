/**
 * The source of memory files by folder. When a tool touches a path, the memory files and rules for that path are
 * attached before the next request, each once. After a compaction or clearing removed them, they are attached again
 * when a path of their folder is touched or still shown. A changed file is attached as changed.
 */
import {
  type ContextEntry,
  formatAttachmentText,
  isVisibleToModel,
} from '@tidemark/core/context/context-entry'
import {
  describeToolCall,
  type FileToolNames,
  normalizePath,
  readToolName,
} from '@tidemark/core/facts/tool-calls'
import { listToolRuns } from '@tidemark/core/facts/tool-runs'
import { isToolResult, isToolUse, toBlocks } from '@tidemark/core/log/block'
import { AppendList } from '@tidemark/core/log/persistent-collections'
import type { ContextSource, SourceContext, SourceItem } from '@tidemark/core/sources/context-source'
import type { LoadedMemoryFile, MemoryFileReader, MemoryFiles } from './memory-reader.ts'

const SOURCE_NAME = 'memory'

interface MemorySourceOptions {
  /** The working directory, to which relative paths are relative. */
  readonly cwd: string
  /** Creates a reader without cached files. */
  readonly createReader: (context: SourceContext) => MemoryFileReader
  /** Called with the files that are attached, and with those that exist and could not be read. */
  readonly onRead?: (found: MemoryFiles, context: SourceContext) => void
}

/** Creates the source. The memory files that apply to the whole session are in the reminder instead. */
export function folderMemorySource({ cwd, createReader, onRead }: MemorySourceOptions): ContextSource {
  const scanner = createTouchScanner(cwd)
  return {
    name: SOURCE_NAME,
    kind: 'standing',
    tellsChanges: true,
    isWhole: true,
    isUrgent: true,
    limit: () => null,
    async *render(context) {
      // After a compaction, the next request attaches what applies to the paths that are still shown.
      const paths = context.moment === 'change' ? scanner.scan(context) : []
      const shown = listShownPaths(context)
      if (paths.length === 0 && shown.length === 0) return
      const reader = createReader(context)
      const fit = createFit(context)
      const again = await Promise.all(shown.map((path) => reader.readAgain(path)))
      for (const [index, read] of again.entries()) {
        const path = shown[index] ?? ''
        if (read === null) continue // A file that is gone is listed no longer, which ends it.
        yield 'why' in read ? { id: path, why: read.why } : fit(read)
      }
      const touched = await readTouched(reader, paths, again)
      const readWhole = touched.files.length === 0 ? new Set() : listFilesReadWhole(context, cwd)
      const found = { ...touched, files: touched.files.filter(({ path }) => !readWhole.has(path)) }
      for (const file of found.files) yield fit(file)
      for (const { path, why } of found.unread) if (!shown.includes(path)) yield { id: path, why }
      if (paths.length > 0) onRead?.(found, context)
    },
  }
}

/** Reads the memory files for the touched paths, without those that the reminder or the context already shows. */
async function readTouched(
  reader: MemoryFileReader,
  paths: readonly string[],
  shown: readonly Awaited<ReturnType<MemoryFileReader['readAgain']>>[],
): Promise<MemoryFiles> {
  if (paths.length === 0) return { files: [], unread: [] }
  const seen = new Set<string>()
  await reader.readRoot(seen)
  for (const file of shown) if (file !== null && 'fileId' in file) seen.add(file.fileId)
  const files: LoadedMemoryFile[] = []
  let last: MemoryFiles = { files: [], unread: [] }
  for (const path of paths) {
    const found = await reader.readForPath(path, seen)
    files.push(...found.files)
    last = found
  }
  return { ...last, files }
}

/** Lists the files that the model has read as a whole and still sees. Attaching one of them would show it twice. */
function listFilesReadWhole({ shown, policy }: SourceContext, cwd: string): ReadonlySet<string> {
  const entries = shown.entries.toArray().filter(isVisibleToModel)
  const cleared = new Set(entries.flatMap((entry) => entry.cleared?.results.map(({ id }) => id) ?? []))
  const runs = listToolRuns(
    entries.map(({ record }) => record),
    policy.rehydrate.files,
  )
  return new Set(
    runs.flatMap(({ id, kind, path, range, status }) => {
      const isWhole = kind === 'read' && path !== null && range === null && status === 'ok'
      return isWhole && !cleared.has(id) ? [normalizePath(path, cwd)] : []
    }),
  )
}

function listShownPaths({ shown }: SourceContext): readonly string[] {
  const own = [...shown.byKey].filter(([key]) => key.startsWith(`${SOURCE_NAME}:`))
  return own.flatMap(([key, attachments]) =>
    attachments.at(-1)?.attachment.ended === true ? [] : [key.slice(SOURCE_NAME.length + 1)],
  )
}

/** Returns a function that converts files to items while they fit the budget. After that, items only name their files. */
function createFit({ budgets, measure }: SourceContext): (file: LoadedMemoryFile) => SourceItem {
  let left = budgets.ambient
  return ({ path, text, importedBy }) => {
    const from = importedBy === null ? {} : { importedBy }
    const whole = { type: 'nested_memory', path, content: text, ...from }
    const tokens = measure(formatAttachmentText(whole))
    if (tokens <= left) {
      left -= tokens
      return { id: path, source: path, attachment: whole }
    }
    const content = `[cut: 0 of ${text.length} characters are shown; read ${path} before you work in its folder]`
    return { id: path, source: path, attachment: { ...whole, content } }
  }
}

// Paths that tool calls touched. Each entry of the context is read once; after a rewrite, all are read again.

interface TouchScan {
  readonly entries: AppendList<ContextEntry>
  /** Paths of calls that have no result yet, by the id of the call. */
  readonly open: ReadonlyMap<string, readonly string[]>
  /** The paths found last. They are returned once more, in case their files could not be appended the first time. */
  readonly paths: readonly string[]
}

const NOTHING_SCANNED: TouchScan = { entries: AppendList.of(), open: new Map(), paths: [] }

/** Sessions whose scan position is kept, because a library user may share one source among several. */
const MAX_SCANS = 16

function createTouchScanner(cwd: string): { scan(context: SourceContext): readonly string[] } {
  let scans: readonly TouchScan[] = []
  return {
    scan({ shown, policy }) {
      const { entries } = shown
      const isEarlier = (one: TouchScan): boolean =>
        one.entries.length > 0 && one.entries.length <= entries.length && entries.extends(one.entries)
      const last = scans.find(isEarlier) ?? NOTHING_SCANNED
      const open = new Map(last.open)
      const added = entries.toArray(last.entries.length)
      const touched = added.flatMap((entry) => listTouchedPaths(entry, open, policy.rehydrate.files))
      const paths = [...new Set(touched.map((path) => normalizePath(path, cwd)))]
      scans = [{ entries, open, paths }, ...scans.filter((one) => one !== last)].slice(0, MAX_SCANS)
      return [...new Set([...last.paths, ...paths])]
    },
  }
}

/** Lists the paths that an entry touches: those of a call that succeeded, and the file that is attached. */
function listTouchedPaths(
  entry: ContextEntry,
  open: Map<string, readonly string[]>,
  tools: FileToolNames,
): readonly string[] {
  const { record } = entry
  if (!isVisibleToModel(entry)) return []
  if (record.type === 'attachment') {
    const { type, filename } = record.attachment
    return type === 'file' && typeof filename === 'string' ? [filename] : []
  }
  if (record.type !== 'user' && record.type !== 'assistant') return []
  return toBlocks(record.message.content).flatMap((block) => {
    if (record.type === 'assistant' && isToolUse(block))
      open.set(
        block.id,
        describeToolCall(readToolName(block), block.input, tools).touches.map(({ path }) => path),
      )
    if (record.type !== 'user' || !isToolResult(block)) return []
    const paths = open.get(block.tool_use_id) ?? []
    open.delete(block.tool_use_id)
    return block.is_error === true ? [] : paths
  })
}

/** The tool Read: text with line numbers, pictures, PDF documents and notebooks. */
import type { Stats } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { formatBytes, formatCount, formatInteger } from '@tidemark/terminal/render/format-numbers'
import type { ToolOutput } from 'tidemark'
import {
  decodeFileText,
  MAX_WHOLE_FILE_BYTES,
  readAllBytes,
  resolveFilePathInput,
  toFileVersion,
  toLargeFileVersion,
  withRegularFile,
} from './file-content.ts'
import { renderNotebook } from './notebook.ts'
import type { FileVersion } from './seen-files.ts'
import { type AgentTool, type AgentToolContext, cutText, defineTool, ToolError } from './tool-definition.ts'
import type { ToolEnvironment } from './tool-environment.ts'

interface ReadInput {
  readonly file_path: string
  readonly offset?: number
  readonly limit?: number
}

const DEFAULT_LINES = 2_000
const DEFAULT_LIMIT_BYTES = 80_000
const MAX_LINE_CHARACTERS = 2_000
/** Maximum size of a picture. In base64, as it is sent, such a picture has 4 MB. */
const MAX_IMAGE_BYTES = 3_000_000
const MAX_DOCUMENT_BYTES = 10_000_000

export function createReadTool(environment: ToolEnvironment): AgentTool {
  return defineTool<ReadInput>({
    description: `Reads a file. Text comes with line numbers (as from cat -n), at most ${formatInteger(DEFAULT_LINES)} lines at a time; what is left out is stated, and offset and limit read on. Lines over ${formatInteger(MAX_LINE_CHARACTERS)} characters are cut. PNG, JPEG, GIF and WebP pictures and PDF documents are shown to you as such; a notebook (.ipynb) is shown as cells with outputs. Directories cannot be read: use Glob. If the file is unchanged and its text is still in this conversation, the answer says so instead of repeating it. Several calls can run at once.`,
    fields: {
      file_path: { type: 'string', description: 'Path of the file, absolute or from the working directory.' },
      offset: { type: 'integer', description: 'The first line to read, from 1.' },
      limit: { type: 'integer', description: 'How many lines to read.' },
    },
    required: ['file_path'],
    parallel: true,
    run: (input, context) => readForModel(input, environment, context),
  })
}

async function readForModel(
  input: ReadInput,
  { cwd, seenFiles, readLimitBytes = DEFAULT_LIMIT_BYTES }: ToolEnvironment,
  { id, signal }: AgentToolContext,
): Promise<ToolOutput> {
  const path = resolveFilePathInput(input.file_path, cwd)
  const range = { first: Math.max(1, input.offset ?? 1), count: Math.max(1, input.limit ?? DEFAULT_LINES) }
  const rangeName = `${range.first}+${range.count}`
  const { version, render } = await withRegularFile(path, (file, facts) =>
    facts.size > MAX_WHOLE_FILE_BYTES
      ? readLargeFile(file, facts, { ...range, limitBytes: readLimitBytes })
      : readSmallFile(file, { ...range, path, limitBytes: readLimitBytes }),
  )
  const shown = seenFiles.findShownText(path, rangeName, version)
  if (shown !== null)
    return shown.toolUseId === null
      ? 'File unchanged since the user attached it to a prompt, earlier in this conversation. Its text is there.'
      : `File unchanged since you last read it. Its text is in the result of that call, earlier in this conversation (call ${shown.toolUseId}).`
  const output = render()
  if (!signal.aborted) seenFiles.noteRead(path, rangeName, { version, toolUseId: id })
  return output
}

/**
 * Reads a file that a prompt names, as Read without a range would show it. `shown`, `total`: numbers of lines. Throws a `ToolError` if the
 * file cannot be shown.
 */
export async function readFileForPrompt(path: string): Promise<{
  readonly output: string | readonly object[]
  readonly version: FileVersion
  readonly range: string
  readonly shown: number
  readonly total: number
}> {
  const range = { first: 1, count: DEFAULT_LINES, limitBytes: DEFAULT_LIMIT_BYTES }
  const { version, render } = await withRegularFile(path, (file, facts) =>
    facts.size > MAX_WHOLE_FILE_BYTES
      ? readLargeFile(file, facts, range)
      : readSmallFile(file, { ...range, path }),
  )
  const output = render() as string | readonly object[]
  const text = typeof output === 'string' ? output : ''
  const shown = text.match(/^ *\d+\t/gm)?.length ?? 0
  const total = Number(/The file has ([\d,]+) lines\.\]$/.exec(text)?.[1]?.replaceAll(',', '') ?? shown)
  return { output, version, range: `${range.first}+${range.count}`, shown, total }
}

interface LineRange {
  /** Number of the first line, from 1. */
  readonly first: number
  readonly count: number
  readonly limitBytes: number
}

interface LoadedFile {
  readonly version: FileVersion
  readonly render: () => ToolOutput
}

async function readSmallFile(
  file: FileHandle,
  range: LineRange & { readonly path: string },
): Promise<LoadedFile> {
  const bytes = await readAllBytes(file, range.path)
  return { version: toFileVersion(bytes), render: () => renderFile(bytes, range) }
}

function renderFile(bytes: Buffer, range: LineRange & { readonly path: string }): ToolOutput {
  const { path } = range
  const media = detectMedia(bytes)
  if (media !== null) return renderMedia(bytes, media, path)
  const decoded = decodeFileText(bytes)
  if (decoded === null)
    throw new ToolError(`${path} is a binary file (${formatBytes(bytes.length)}), which Read cannot show.`)
  const notebook = /\.ipynb$/i.test(path) ? renderNotebook(decoded.text) : null
  if (notebook === null) return renderLines(splitLines(decoded.text), range)
  const pictures = notebook.images.map(({ mediaType, data }) => toMediaBlock('image', mediaType, data))
  const text = renderLines(splitLines(notebook.text), range)
  return pictures.length === 0 ? text : [{ type: 'text', text }, ...pictures]
}

/** Splits a text into lines. A line end at the end of the text does not begin another line. */
function splitLines(text: string): readonly string[] {
  const lines = text.split(/\r?\n/)
  return lines.at(-1) === '' ? lines.slice(0, -1) : lines
}

/** Numbers the lines of a range, up to the limit of bytes, and describes what is left out. `lines`: all lines of the file. */
function renderLines(lines: readonly string[], { first, count, limitBytes }: LineRange): string {
  if (lines.length === 0) return 'The file is empty.'
  if (first > lines.length)
    throw new ToolError(`The file has ${formatCount(lines.length, 'line')}; there is no line ${first}.`)
  const rows = fitRows(lines.slice(first - 1, first - 1 + count), { first, count, limitBytes })
  const next = first + rows.length
  const left = lines.length - next + 1
  if (left <= 0) return rows.join('\n')
  return `${rows.join('\n')}\n\n[${formatCount(left, 'more line')}: read on with offset ${next}. The file has ${formatInteger(lines.length)} lines.]`
}

/** Returns as many numbered lines as the limit allows, at least one. */
function fitRows(lines: readonly string[], { first, limitBytes }: LineRange): readonly string[] {
  const rows: string[] = []
  let used = 0
  for (const line of lines) {
    const row = `${String(first + rows.length).padStart(6)}\t${cutLine(line)}`
    used += Buffer.byteLength(row) + 1
    if (used > limitBytes && rows.length > 0) break
    rows.push(row)
  }
  return rows
}

function cutLine(line: string): string {
  return line.length <= MAX_LINE_CHARACTERS ? line : `${cutText(line, MAX_LINE_CHARACTERS)} … [line cut]`
}

const CHUNK_BYTES = 1_000_000

/** Reads a range of lines of a file that is too large to be read whole. Reading stops at the end of the range. */
async function readLargeFile(file: FileHandle, facts: Stats, range: LineRange): Promise<LoadedFile> {
  const chunk = Buffer.alloc(CHUNK_BYTES)
  const decoder = new TextDecoder('utf-8', { ignoreBOM: false })
  const lines: string[] = []
  let number = 1
  let rest = ''
  let position = 0
  while (lines.length < range.count) {
    const { bytesRead } = await file.read(chunk, 0, CHUNK_BYTES, position)
    if (bytesRead === 0) break
    if (chunk.subarray(0, bytesRead).includes(0))
      throw new ToolError(`The file is binary (${formatBytes(facts.size)}), which Read cannot show.`)
    position += bytesRead
    const parts = (rest + decoder.decode(chunk.subarray(0, bytesRead), { stream: true })).split('\n')
    // A line may be as long as the file, so only as much of it is kept as can be shown.
    rest = cutText(parts.pop() ?? '', MAX_LINE_CHARACTERS + 1)
    for (const line of parts) {
      if (number >= range.first && lines.length < range.count) lines.push(line.replace(/\r$/, ''))
      number += 1
    }
  }
  if (lines.length < range.count && number >= range.first && rest !== '') lines.push(rest)
  if (lines.length === 0) throw new ToolError(`The file has fewer than ${formatInteger(range.first)} lines.`)
  const rows = fitRows(lines, range)
  const next = range.first + rows.length
  const lastRead = rest === '' ? number - 1 : number
  const isWhole = position >= facts.size && next > lastRead
  const more = isWhole ? 'The file ends here.' : `There is more: read on with offset ${next}.`
  const text = `${rows.join('\n')}\n\n[${more} The file has ${formatBytes(facts.size)}.]`
  return { version: toLargeFileVersion(facts), render: () => text }
}

interface Media {
  readonly kind: 'image' | 'document'
  readonly mediaType: string
}

/** Detects from the first bytes whether a file is a picture or a PDF document. */
function detectMedia(bytes: Buffer): Media | null {
  const head = bytes.subarray(0, 12).toString('latin1')
  if (head.startsWith('\x89PNG\r\n\x1a\n')) return { kind: 'image', mediaType: 'image/png' }
  if (head.startsWith('\xff\xd8\xff')) return { kind: 'image', mediaType: 'image/jpeg' }
  if (/^GIF8[79]a/.test(head)) return { kind: 'image', mediaType: 'image/gif' }
  if (/^RIFF[\s\S]{4}WEBP/.test(head)) return { kind: 'image', mediaType: 'image/webp' }
  return head.startsWith('%PDF-') ? { kind: 'document', mediaType: 'application/pdf' } : null
}

function renderMedia(bytes: Buffer, { kind, mediaType }: Media, path: string): ToolOutput {
  const limit = kind === 'image' ? MAX_IMAGE_BYTES : MAX_DOCUMENT_BYTES
  const size = formatBytes(bytes.length)
  if (bytes.length > limit)
    throw new ToolError(
      `${path} is ${mediaType} with ${size}, over the limit of ${formatBytes(limit)}. Make it smaller with a command, or extract what you need.`,
    )
  return [
    { type: 'text', text: `${path} (${mediaType}, ${size})` },
    toMediaBlock(kind, mediaType, bytes.toString('base64')),
  ]
}

function toMediaBlock(kind: Media['kind'], mediaType: string, data: string): object {
  return { type: kind, source: { type: 'base64', media_type: mediaType, data } }
}

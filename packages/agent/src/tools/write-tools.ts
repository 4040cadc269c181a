/** The tools Write, Edit and MultiEdit. A file is changed only if the model has seen its current content. */
import { randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { mkdir, open, rename, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { formatCount } from '@tidemark/terminal/render/format-numbers'
import {
  type DecodedText,
  decodeFileText,
  encodeFileText,
  type FileContent,
  hasErrorCode,
  readWholeFile,
  resolveFilePathInput,
  toFileVersion,
} from './file-content.ts'
import {
  applyEdits,
  describeReplacement,
  hasCrlfLines,
  renderChanges,
  type TextEdit,
  toCrlf,
} from './text-edits.ts'
import { resolveRealPath } from './tool-access.ts'
import { type AgentTool, defineTool, ToolError } from './tool-definition.ts'
import type { ToolEnvironment } from './tool-environment.ts'

const PATH_FIELD = {
  type: 'string',
  description: 'Path of the file, absolute or from the working directory.',
}
const EDIT_FIELDS = {
  old_string: {
    type: 'string',
    description: 'The text to replace, exactly as in the file, without line numbers.',
  },
  new_string: { type: 'string', description: 'The text to put in its place.' },
  replace_all: { type: 'boolean', description: 'Replace every occurrence. Default: false.' },
}

export function createWriteTools(environment: ToolEnvironment): Readonly<Record<string, AgentTool>> {
  const changeFile = createFileChanger(environment)
  return {
    Write: defineTool<{ file_path: string; content: string }>({
      description:
        'Writes a whole file and creates its folders. An existing file must have been read in this session and be unchanged since; it keeps its encoding and line ends. To change a part of a file, use Edit.',
      fields: {
        file_path: PATH_FIELD,
        content: { type: 'string', description: 'The whole text of the file.' },
      },
      required: ['file_path', 'content'],
      run: ({ file_path, content }, { id }) =>
        changeFile(id, file_path, (file) => replaceText(file, content)),
    }),
    Edit: defineTool<{ file_path: string } & TextEdit>({
      description:
        'Replaces a text in a file. old_string must be exactly as in the file, with its indentation, and occur once, unless replace_all is set. The file must have been read in this session and be unchanged since. An empty old_string creates a new file with new_string.',
      fields: { file_path: PATH_FIELD, ...EDIT_FIELDS },
      required: ['file_path', 'old_string', 'new_string'],
      run: ({ file_path, ...edit }, { id }) => changeFile(id, file_path, (file) => editText(file, [edit])),
    }),
    MultiEdit: defineTool<{ file_path: string; edits: readonly TextEdit[] }>({
      description:
        'Makes several replacements in one file, in order, each as by Edit and on the result of the one before. If one does not fit, the file stays as it is.',
      fields: {
        file_path: PATH_FIELD,
        edits: {
          type: 'array',
          minItems: 1,
          items: {
            type: 'object',
            properties: EDIT_FIELDS,
            required: ['old_string', 'new_string'],
            additionalProperties: false,
          },
        },
      },
      required: ['file_path', 'edits'],
      run: ({ file_path, edits }, { id }) => changeFile(id, file_path, (file) => editText(file, edits)),
    }),
  }
}

interface TextFile {
  /** The path without symbolic links. */
  readonly path: string
  /** The content on disk; null if the file does not exist. */
  readonly current: DecodedText | null
  /** Throws a `ToolError` if the model has not seen the present content. */
  readonly requireKnown: () => void
}

interface FileChange {
  readonly text: string
  /** The text for the model. */
  readonly report: string
}

type ChangeFile = (callId: string, path: string, change: (file: TextFile) => FileChange) => Promise<string>

/** Creates the function that reads, changes and writes a file. Changes of one file run one after the other. */
function createFileChanger({ cwd, seenFiles, permittedWrites }: ToolEnvironment): ChangeFile {
  const running = new Map<string, Promise<unknown>>()
  async function change(path: string, toChange: (file: TextFile) => FileChange): Promise<string> {
    const content = await readWholeFile(path)
    const current = content === null ? null : decodeFileText(content.bytes)
    if (content !== null && current === null)
      throw new ToolError(`${path} is a binary file, which is not changed.`)
    const requireKnown = (): void => requireKnownVersion(path, content, seenFiles.findSeenVersion(path))
    const { text, report } = toChange({ path, current, requireKnown })
    const bytes = encodeFileText(text, current ?? { encoding: 'utf8', hasMark: false })
    await writeFileAtomically(path, bytes, content)
    seenFiles.noteWritten(path, toFileVersion(bytes))
    return report
  }
  return async (callId, given, toChange) => {
    const path = resolveFilePathInput(given, cwd)
    const permitted = permittedWrites?.get(callId) ?? path
    permittedWrites?.delete(callId)
    if (permitted !== path) throw new ToolError(describeSwap(permitted, path))
    const turn = (running.get(path) ?? Promise.resolve()).then(() => change(path, toChange))
    const settled = turn
      .catch(() => undefined)
      .finally(() => {
        if (running.get(path) === settled) running.delete(path)
      })
    running.set(path, settled)
    return await turn
  }
}

function requireKnownVersion(path: string, content: FileContent | null, seen: string | null): void {
  if (content === null) return
  if (seen === null)
    throw new ToolError(`${path} exists and has not been read in this session. Read it first.`)
  if (seen !== content.version)
    throw new ToolError(`${path} has changed on disk since you last saw it. Read it again, then change it.`)
}

function describeSwap(permitted: string, found: string): string {
  return `The path leads to ${found} now, and not to ${permitted}, for which it was permitted. Nothing was written.`
}

/** Throws a `ToolError` if a folder in a resolved path has since been replaced by a symbolic link. */
function requireSameFolder(path: string): void {
  const found = resolveRealPath(dirname(path))
  if (found !== dirname(path)) throw new ToolError(describeSwap(path, join(found, basename(path))))
}

/** Writes a file atomically, or in place if its folder allows no new files. `old`: the file that is replaced; its mode is kept. */
async function writeFileAtomically(path: string, bytes: Buffer, old: FileContent | null): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  const draft = join(dirname(path), `.draft-${randomUUID()}`)
  try {
    const file = await open(draft, 'wx', old?.mode ?? 0o666)
    try {
      // The draft exists now. If its folder is replaced later, the rename fails, because the draft is not in the new folder.
      requireSameFolder(path)
      await file.writeFile(bytes)
      if (old !== null) await file.chmod(old.mode)
    } finally {
      await file.close()
    }
    await rename(draft, path)
  } catch (error) {
    await rm(draft, { force: true }).catch(() => undefined)
    // If the folder does not allow new files, an existing file can still be written in place.
    if (old === null || !hasErrorCode(error, 'EACCES', 'EPERM', 'EROFS')) throw error
    requireSameFolder(path)
    await writeFile(path, bytes, { flag: constants.O_WRONLY | constants.O_TRUNC | constants.O_NOFOLLOW })
  }
}

function replaceText({ path, current, requireKnown }: TextFile, content: string): FileChange {
  requireKnown()
  if (current === null) {
    const lines = content.split('\n').length - (content.endsWith('\n') || content === '' ? 1 : 0)
    return { text: content, report: `Created ${path} (${formatCount(lines, 'line')}).` }
  }
  const text = hasCrlfLines(current.text) ? toCrlf(content) : content
  return { text, report: `Wrote ${path}: ${describeReplacement(current.text, text)}.` }
}

function editText(file: TextFile, edits: readonly TextEdit[]): FileChange {
  const { path, current, requireKnown } = file
  const [first, ...rest] = edits
  if (first === undefined) throw new ToolError('edits is empty.')
  if (current === null && first.old_string !== '')
    throw new ToolError(`There is no file ${path}. To create it, use Write or an empty old_string.`)
  if (first.old_string === '' && (current === null || current.text.trim() === '')) {
    const { text } = applyEdits(first.new_string, rest)
    return replaceText({ ...file, requireKnown: () => undefined }, text)
  }
  requireKnown()
  const edited = applyEdits(current?.text ?? '', edits)
  return { text: edited.text, report: `Edited ${path}. The changed lines:\n${renderChanges(edited)}` }
}

/**
 * Attaches files that a prompt names, as in `Fix @src/a.ts`. Their text follows the prompt in blocks of its own, as the tool Read would
 * show it. The user's own words stay unchanged.
 */
import { readdir, stat } from 'node:fs/promises'
import { formatCount, formatInteger } from '@tidemark/terminal/render/format-numbers'
import { formatProjectPath } from '@tidemark/terminal/render/text'
import { wrapInReminder } from 'tidemark/project'
import { resolveFilePathInput } from '../tools/file-content.ts'
import { readFileForPrompt } from '../tools/read-tool.ts'
import type { SeenFiles } from '../tools/seen-files.ts'
import { decidePermission, type PermissionContext } from './permissions.ts'
import type { AgentPrompt } from './prompt-commands.ts'

interface PromptBlock {
  readonly type: string
  readonly text?: string
}

export interface AttachedFiles {
  /** Blocks to send behind the prompt. */
  readonly blocks: readonly PromptBlock[]
  /** One for each file and folder: `src/a.ts, 61 lines`. */
  readonly labels: readonly string[]
  /** Sentences for the user: what was not attached, and why. */
  readonly notices: readonly string[]
}

interface AttachOptions {
  readonly context: PermissionContext
  readonly seenFiles: SeenFiles
}

const MOST_FILES = 20
/** Maximum characters of all attached texts together. */
const MOST_CHARACTERS = 240_000
/** Maximum entries that are listed of a folder. */
const MOST_NAMES = 300
/** Maximum names after `@` that are looked up on the disk, because a pasted text may have thousands that are no files. */
const MOST_MENTIONS = 200
const TOO_MUCH = 'the prompt names too much. The model can read it.'

/** Reads what a prompt names after `@`, except files for which the tool Read would need a question. Never throws. */
export async function readMentionedFiles(
  prompt: AgentPrompt,
  options: AttachOptions,
): Promise<AttachedFiles> {
  const blocks: PromptBlock[] = []
  const labels: string[] = []
  const notices: string[] = []
  const missing: string[] = []
  let characters = 0
  const mentions = listMentions(prompt)
  for (const name of mentions.slice(0, MOST_MENTIONS)) {
    const found = await readMention(name, options, labels.length >= MOST_FILES)
    if (found === null) {
      if (/[./]/.test(name)) missing.push(`@${name}`)
      continue
    }
    const size = 'why' in found ? 0 : (found.blocks[0]?.text?.length ?? 0)
    if ('why' in found) notices.push(`@${name} was not attached: ${found.why}`)
    else if (characters + size > MOST_CHARACTERS) notices.push(`@${name} was not attached: ${TOO_MUCH}`)
    else {
      characters += size
      blocks.push(...found.blocks)
      labels.push(found.label)
      found.note()
    }
  }
  if (missing.length > 0)
    notices.push(`Nothing was attached for ${missing.slice(0, 5).join(', ')}: there is no such file.`)
  if (mentions.length > MOST_MENTIONS)
    notices.push(`Only the first ${MOST_MENTIONS} names behind @ were looked up as files.`)
  return { blocks, labels, notices }
}

/** Matches an at sign at the start or after a blank or bracket, and the path after it. A path with blanks is in quotes. */
const MENTION = /(?<=^|[\s(])@(?:"([^"\n]+)"|([^\s"@]+))/g

/** Lists the names after at signs, each once. */
function listMentions(prompt: AgentPrompt): readonly string[] {
  const blocks = typeof prompt === 'string' ? [{ text: prompt }] : (prompt as readonly PromptBlock[])
  const names = blocks.flatMap(({ text = '' }) =>
    [...text.matchAll(MENTION)].map(([, quoted, plain = '']) => quoted ?? plain),
  )
  return [...new Set(names)].filter((name) => name !== '')
}

type FoundMention =
  | {
      readonly blocks: readonly PromptBlock[]
      readonly label: string
      /** Records that the model has seen the file. */
      readonly note: () => void
    }
  | { readonly why: string }

/**
 * Reads what a name stands for; null if there is no such file. Punctuation after a path is not part of it. `isFull`: the limit of files is
 * reached, so this one is not read.
 */
async function readMention(
  name: string,
  options: AttachOptions,
  isFull: boolean,
): Promise<FoundMention | null> {
  const { context } = options
  for (const given of new Set([name, name.replace(/[.,;:!?)\]}'"`]+$/, '')])) {
    if (given === '') continue
    const path = resolveFilePathInput(given, context.folder)
    const facts = await stat(path).catch(() => null)
    if (facts === null) continue
    const { decision, reason } = decidePermission('Read', { kind: 'read', paths: [path] }, context)
    if (decision !== 'allow') return { why: `${reason} Ask the model to read it.` }
    if (isFull) return { why: TOO_MUCH }
    try {
      return facts.isDirectory() ? await readFolder(path, context) : await readFile(path, options)
    } catch (error) {
      return { why: error instanceof Error ? error.message : String(error) }
    }
  }
  return null
}

async function readFile(path: string, { context, seenFiles }: AttachOptions): Promise<FoundMention> {
  const { output, version, range, shown, total } = await readFileForPrompt(path)
  const shownPath = formatProjectPath(path, context.folder)
  const isText = typeof output === 'string'
  const lines =
    shown === total ? formatCount(total, 'line') : `${formatInteger(shown)} of ${formatCount(total, 'line')}`
  const label = isText ? `${shownPath}, ${lines}` : shownPath
  const note = (): void => seenFiles.noteRead(path, range, { version, toolUseId: null })
  const blocks = isText ? [{ type: 'text', text: output }] : (output as readonly PromptBlock[])
  const [first, ...media] = blocks
  return { blocks: [writeReminder(label, first?.text ?? ''), ...media], label, note }
}

async function readFolder(path: string, context: PermissionContext): Promise<FoundMention> {
  const entries = await readdir(path, { withFileTypes: true })
  const names = entries
    .filter(
      ({ name }) =>
        decidePermission('Read', { kind: 'read', paths: [`${path}/${name}`] }, context).decision !== 'deny',
    )
    .map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name))
    .sort()
  const label = `${formatProjectPath(path, context.folder)}/, ${formatCount(names.length, 'entry', 'entries')}`
  const more = names.length > MOST_NAMES ? [`[${names.length - MOST_NAMES} more: use Glob]`] : []
  const text = [...names.slice(0, MOST_NAMES), ...more].join('\n')
  return { blocks: [writeReminder(label, text)], label, note: () => undefined }
}

const HEADING = 'The user has attached '

function writeReminder(label: string, text: string): PromptBlock {
  return { type: 'text', text: wrapInReminder(`${HEADING}${label}.\n${text}`) }
}

/** The beginning of a reminder with attached files. A reminder with a number in its tag has one more line first. */
const REMINDER_START = new RegExp(`^<system-reminder(?:>|-\\d+>\\n[^\\n]*)\\n${HEADING}([^\\n]*)\\.\\n`)

/** Returns labels of the files that are attached in these blocks: `src/a.ts, 61 lines`. */
export function listAttachedLabels(blocks: readonly PromptBlock[]): readonly string[] {
  return blocks.flatMap(({ text = '' }) => REMINDER_START.exec(text)?.[1] ?? [])
}

/**
 * The prompt by which a model updates the notes beside the conversation, and what it may answer: edits of the notes file
 * with the session's own file tool, or sections between tags.
 */
import { describeToolCall, type FileToolNames } from '../facts/tool-calls.ts'
import type { ToolUseBlock } from '../log/block.ts'
import { findNotesExcess, formatNotes, type NotesLimits, parseNotes } from './notes-file.ts'

interface ExtractionPromptInput {
  readonly notes: string
  readonly path: string
  readonly limits: NotesLimits
  readonly titleWords: { readonly minimum: number; readonly maximum: number }
  /** Instructions of the user in place of the default ones. */
  readonly instructions?: string
}

/** Returns the message that asks a model to update the notes. It always has the notes, and says what is too long in them. */
export function writeNotesUpdatePrompt(input: ExtractionPromptInput): string {
  const { notes, path, limits, titleWords, instructions } = input
  const excess = findNotesExcess(notes, limits)
  return [
    `This message is not from the user and is no part of the task: it asks you to bring the notes of this session up to date. After it the work goes on as if it had not been asked. The notes are the file ${path}.`,
    instructions?.trim() || writeInstructions(titleWords, limits),
    ...excess.sections.map(
      ({ heading, tokens }) =>
        `The section "${heading}" has ${tokens} tokens, and ${limits.section} are allowed: condense it now. Merge what belongs together and drop what no longer matters, oldest first.`,
    ),
    ...(excess.total === null
      ? []
      : [
          `THE FILE IS TOO LONG: ${excess.total} tokens, and at most ${limits.total} are allowed. You must shorten it in this update, before you add anything. Keep "Current state" and "Errors and corrections" precise, and cut all other sections hard.`,
        ]),
    ANSWER_FORM,
    `The file as it is now:\n<notes>\n${notes.trimEnd()}\n</notes>`,
  ].join('\n\n')
}

function writeInstructions(
  { minimum, maximum }: ExtractionPromptInput['titleWords'],
  { section, total }: NotesLimits,
): string {
  return [
    'Write what someone would need who takes this work over tomorrow and cannot read the conversation:',
    '- Exact file paths, names of functions, commands with their flags, error messages, figures. No general statements.',
    '- What the user asked for and corrected, in the words of the user.',
    '- "Current state" is always rewritten, so that it is true of this moment. "Worklog" gets one terse line per step.',
    `- "Session title" has ${minimum} to ${maximum} words.`,
    '- Nothing that the notes already say, nothing about these notes, no passwords or keys. A section with nothing to say stays empty.',
    '- Keep every heading (`# …`) and the italic line below it exactly as it is. Add no headings of that level.',
    `- At most ${section} tokens a section and ${total} in all.`,
  ].join('\n')
}

const ANSWER_FORM = `How to answer:
- If you have a tool that edits or writes files, call it on that file and on no other, with all calls in one response; nothing else can be read, written or run now.
- Otherwise answer with text: for each section that changes \`<section name="Heading">\`, the whole new text of the section, \`</section>\`; or the whole file between \`<notes>\` and \`</notes>\`.`

/** The outcome of a tool call that was to edit the notes. `refused`: the call was for something else. */
type NotesEdit =
  | { readonly ok: true; readonly notes: string }
  | { readonly ok: false; readonly refused: boolean; readonly message: string }

/** Applies a tool call to the text of the notes, if it edits or writes the notes file; refuses any other. No tool is run. */
export function applyNotesToolCall(
  notes: string,
  { name, input }: Pick<ToolUseBlock, 'name' | 'input'>,
  { path, tools }: { readonly path: string; readonly tools?: FileToolNames },
): NotesEdit {
  const { kind, path: named, touches, edits } = describeToolCall(name, input, tools)
  if ((kind !== 'edit' && kind !== 'write') || named !== path || touches.length !== 1)
    return {
      ok: false,
      refused: true,
      message: `Only ${path} can be edited now, and nothing else can be done.`,
    }
  const [touch] = touches
  if (kind === 'write')
    return touch?.newText == null
      ? failEdit('The call has no text to write.')
      : { ok: true, notes: touch.newText }
  if (edits.length === 0) return failEdit('The call has no replacement of one text by another.')
  let text = notes
  for (const { oldText, newText, replaceAll } of edits) {
    if (oldText === null || oldText === '' || newText === null)
      return failEdit('Give the text to replace and the new text.')
    if (!text.includes(oldText))
      return failEdit('The text to replace is not in the file; copy it from there exactly.')
    text = replaceAll ? text.replaceAll(oldText, () => newText) : text.replace(oldText, () => newText)
  }
  return { ok: true, notes: text }
}

function failEdit(message: string): NotesEdit {
  return { ok: false, refused: false, message }
}

/** Applies an answer in text: the whole notes or single sections between tags. Null if it has neither. No file is written. */
export function applyNotesTextAnswer(notes: string, answer: string): NotesEdit | null {
  const whole = /<notes>\n?([\s\S]*)\n?<\/notes>/.exec(answer)?.[1]
  if (whole !== undefined) return { ok: true, notes: whole }
  const given = [...answer.matchAll(/<section name="([^"\n]+)">\n?([\s\S]*?)\n?<\/section>/g)]
  if (given.length === 0) return null
  const sections = parseNotes(notes).map((section) => ({ ...section }))
  for (const [, name = '', text = ''] of given) {
    const section = sections.find(({ heading }) => heading.toLowerCase() === name.trim().toLowerCase())
    if (section === undefined) return failEdit(`There is no section "${name}".`)
    section.body = readSectionBody(text, section.heading)
  }
  return { ok: true, notes: formatNotes(sections) }
}

/** Returns the text of a section, without the heading and the italic line that a model may have repeated. */
function readSectionBody(text: string, heading: string): string {
  const parsed = parseNotes(text.trim())
  const [first] = parsed
  return parsed.length === 1 && first?.heading === heading ? first.body : text.trim()
}

/** The notes of a session as they are written from its records without a model. */
import { extractSessionFacts } from '../../src/facts/session-facts.ts'
import type { KnownRecord } from '../../src/log/record.ts'
import { runStepsAtOnce } from '../../src/log/work-steps.ts'
import { NOTES_SECTION_TEMPLATES, type NotesSectionName, parseNotes } from '../../src/notes/notes-file.ts'
import { type NotesRenderOptions, renderNotes } from '../../src/notes/render-notes.ts'

export const NOTES_LIMITS: NotesRenderOptions = {
  sectionTokens: 2_000,
  decisionTokens: 3_500,
  totalTokens: 12_000,
  countTokens: (text) => Math.ceil(text.length / 4),
}

export function writeNotes(
  records: readonly KnownRecord[],
  options: Partial<NotesRenderOptions> = {},
): string {
  return runStepsAtOnce(renderNotes(extractSessionFacts(records), { ...NOTES_LIMITS, ...options }))
}

export function readNotesSection(notes: string, name: NotesSectionName): string {
  return (
    parseNotes(notes).find(({ heading }) => heading === NOTES_SECTION_TEMPLATES[name].heading)?.body ?? ''
  )
}

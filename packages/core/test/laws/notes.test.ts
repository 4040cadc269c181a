import { countPropertyRuns } from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createFactsKeeper } from '../../src/facts/session-facts.ts'
import type { KnownRecord } from '../../src/log/record.ts'
import { buildSessionLog, listBranchRecords } from '../../src/log/session-log.ts'
import { runStepsAtOnce } from '../../src/log/work-steps.ts'
import { NOTES_SECTION_TEMPLATES, NOTES_TEMPLATE, parseNotes } from '../../src/notes/notes-file.ts'
import { renderNotes } from '../../src/notes/render-notes.ts'
import { removeControlCharacters } from '../../src/text/truncate-text.ts'
import { CodingSession } from '../summarize/coding-session.ts'
import { NOTES_LIMITS as LIMITS, writeNotes } from '../summarize/written-notes.ts'
import { generatedSessions } from './generated-sessions.ts'

const { countTokens } = LIMITS

/** One step of coding work: what is done, and which of a few files, commands and texts it is done with. */
type Step = readonly [kind: number, which: number, text: string]

const steps = fc.array(
  fc.tuple(fc.nat({ max: 8 }), fc.nat({ max: 5 }), fc.string({ unit: 'binary', maxLength: 60 })),
  { maxLength: 60 },
)

function work(done: readonly Step[]): readonly KnownRecord[] {
  const session = new CodingSession()
  for (const [kind, which, text] of done) {
    if (kind === 0) session.says(`Do ${text} ${which}`)
    else if (kind === 1)
      session.answers(`I decided to use ${text} because of ${which}. The cause was ${text}.`)
    else if (kind === 2) session.edits(`/repo/part-${which}/${which}.ts`, text, which === 5)
    else if (kind === 3) session.runs(`make ${which}\n  --note '${text}'`, `${text}\nok`, which % 2 === 0)
    else if (kind === 4) session.reads(`/repo/read-${which}.md`, text)
    else if (kind === 5)
      session.lists([{ content: `${text} ${which}`, status: which > 2 ? 'pending' : 'completed' }])
    else if (kind === 6) session.runs('npm test', `FAILED a.py::${which} - ${text}\n1 failed`, true)
    else if (kind === 7) session.says('[Request interrupted by user]')
    else session.builder.attachment({ type: 'queued_command', prompt: `No, ${text}` })
  }
  return session.history
}

const runs = { numRuns: countPropertyRuns(100) }

describe('the notes of the local keeper', () => {
  it('are the same whether they were written after every record or only once', () => {
    fc.assert(
      fc.property(steps, (done) => {
        const records = work(done)
        const keeper = createFactsKeeper()
        for (const record of records) {
          keeper.add(record)
          runStepsAtOnce(renderNotes(keeper.read(), { ...LIMITS, totalTokens: 500 }))
        }
        expect(runStepsAtOnce(renderNotes(keeper.read(), LIMITS))).toBe(writeNotes(records))
      }),
      runs,
    )
  })

  it('can be written of every session, within their tokens and in sections that are read again', () => {
    fc.assert(
      fc.property(generatedSessions(), fc.integer({ min: 600, max: 3_000 }), (session, totalTokens) => {
        const records = listBranchRecords(buildSessionLog(session.records))
        const notes = writeNotes(records, { ...LIMITS, totalTokens })
        expect(countTokens(notes)).toBeLessThanOrEqual(totalTokens)
        expect(parseNotes(notes).map(({ heading }) => heading)).toEqual(
          parseNotes(NOTES_TEMPLATE).map(({ heading }) => heading),
        )
      }),
      runs,
    )
  })

  it('have no control characters, and keep their sections whatever a text contains', () => {
    fc.assert(
      fc.property(steps, (done) => {
        const notes = writeNotes(work(done))
        expect(notes).not.toMatch(/[^\P{Cc}\t\n]/u)
        expect(parseNotes(notes)).toHaveLength(Object.keys(NOTES_SECTION_TEMPLATES).length)
      }),
      { ...runs, examples: [[[[1, 0, '\r𐀀𐀀𐀀𐀀']]]] },
    )
  })

  it('invent nothing: every command and every path in them is in the log', () => {
    fc.assert(
      fc.property(steps, (done) => {
        const records = work(done)
        const commands = new Set<string>()
        const paths = new Set<string>()
        for (const record of records) collectInputs(record, commands, paths)
        const notes = writeNotes(records)
        for (const [, shown = ''] of notes.matchAll(/^- `(.*)` → (?:ok|failed)/gm))
          expect([...commands].some((command) => command.startsWith(shown.replace(/…$/, '')))).toBe(true)
        for (const [, shown = ''] of notes.matchAll(/^- (\/repo\/[^:]+): (?:created|edited)/gm))
          expect(paths).toContain(shown)
      }),
      runs,
    )
  })
})

/** Collects commands, in the form in which the notes show them, and paths of files that were changed. */
function collectInputs(record: KnownRecord, commands: Set<string>, paths: Set<string>): void {
  if (record.type !== 'assistant' || typeof record.message.content === 'string') return
  for (const block of record.message.content) {
    const { command, file_path: path } = (block.input ?? {}) as Readonly<Record<string, unknown>>
    if (typeof command === 'string') commands.add(cleanLine(command))
    if (typeof path === 'string') paths.add(path)
  }
}

function cleanLine(text: string): string {
  // A vertical tab is white space as well as a control character: the notes show a blank for it.
  const line = text.replace(/\s+/g, ' ')
  const plain = removeControlCharacters(line).replace(/[\u202a-\u202e\u2066-\u2069]/g, '')
  return plain.replace(/\s+/g, ' ').trim().replaceAll('`', "'")
}

describe('a credential', () => {
  const secret = `ghp_${'a1B2'.repeat(9)}`

  it.each<[string, (session: CodingSession) => void]>([
    ['in a prompt', (session) => session.says(`Use ${secret} for the API`)],
    [
      'in a correction',
      (session) => {
        session.says('[Request interrupted by user]')
        session.says(`No, use ${secret}`)
      },
    ],
    ['at the end of a very long prompt', (session) => session.says(`${'x '.repeat(4_000)}${secret}`)],
    ['in a command', (session) => session.runs(`curl -H "Authorization: token ${secret}" x`, 'fine')],
    ['in the output of a command', (session) => session.runs('env', `TOKEN=${secret}`)],
    [
      'in an error',
      (session) => session.runs('env', `${'y'.repeat(30_000)}\nTOKEN=${secret} is wrong`, true),
    ],
    ['in a todo item', (session) => session.lists([{ content: `try ${secret}`, status: 'pending' }])],
    [
      'in a finished todo item',
      (session) => session.lists([{ content: `try ${secret}`, status: 'completed' }]),
    ],
    ['in a path', (session) => session.edits(`/repo/${secret}/a.ts`, 'x')],
    ['in a text written to a file', (session) => session.edits('/repo/a.ts', `const key = "${secret}"`)],
    [
      'in a decision',
      (session) => {
        session.answers(`I replace ${secret}, which has expired for good.`)
        session.edits('/repo/a.ts', 'x')
      },
    ],
    [
      'in an answer',
      (session) => {
        session.answers(`The cause was that ${secret} has expired for good.`)
        session.says('Go on.')
      },
    ],
    ['in a plan', (session) => session.calls('ExitPlanMode', { plan: `Use ${secret}` }, 'approved')],
    ['in the name of a test', (session) => session.runs('t', `FAILED a.py::${secret} - x`, true)],
    ['in a commit', (session) => session.runs(`git commit -m "add ${secret}"`, 'ok')],
  ])('%s is not in the notes', (_, act) => {
    const session = new CodingSession()
    session.says('Go.')
    act(session)
    session.answers('Done with the work on the token that you gave me.')
    const notes = writeNotes(session.history)
    expect(notes).not.toContain(secret)
    expect(notes).not.toContain(secret.slice(-20))
    expect(notes).toContain('[redacted]')
  })
})

/** What the gate adds to notes, which shorten paths and errors, before they stand for a conversation. */
import { describe, expect, it } from 'vitest'
import { extractSessionFacts } from '../../src/facts/session-facts.ts'
import { CodingSession } from './coding-session.ts'
import { gateRules, repairSummary } from './summary-rules.ts'

describe('notes that stand for a conversation', () => {
  const work = new CodingSession()
  work.reads('/app/src/notes.md', 'x\ny')
  work.runs('npm test', 'Exit code 1\nparser.ts:1 unexpected token', true)
  work.edits('/app/src/parser.ts', 'export {}')
  work.runs('npm test', 'ok')
  const facts = { ...extractSessionFacts(work.history), folders: ['/app'] }
  const notes = '- src: parser.ts, notes.md\n- fixed: `npm test` had failed (unexpected token); ok'

  it('get every path whole, also of files that were only read, and every error in full, also if it was fixed', () => {
    expect(
      repairSummary(notes, facts, { ...gateRules, author: 'notes' as const, isNotes: true }).additions,
    ).toEqual([
      'From the log, since the summary above does not have it:',
      'Files touched:\n- /app/src/parser.ts: edited; newest text begins: export {}\n- /app/src/notes.md: read; 2 lines when last read',
      'Commands that failed and have succeeded since:\n- `npm test` failed and has succeeded since after changes to parser.ts. Its last error:\nExit code 1\nparser.ts:1 unexpected token',
    ])
  })

  it('are reported to lack an error without room, but no path that can be told from its folder', () => {
    const rules = { ...gateRules, author: 'notes' as const, isNotes: true, tokens: 0 }
    const uuid = facts.failures[0]?.uuid
    expect(repairSummary(notes, facts, rules).unfit).toEqual([uuid])
    expect(repairSummary('Nothing.', facts, rules).unfit).toEqual([
      '/app/src/parser.ts',
      '/app/src/notes.md',
      uuid,
    ])
  })

  it('get the newest fixed errors only, where there are many: they may not fill the room of all that is added', () => {
    const busy = new CodingSession()
    for (let job = 0; job < 40; job += 1) {
      busy.runs(`npm test ${job}`, `Exit code 1\n${'line of output '.repeat(30)}${job}`, true)
      busy.runs(`npm test ${job}`, 'ok')
    }
    const many = extractSessionFacts(busy.history)
    const rules = { ...gateRules, author: 'notes' as const, isNotes: true, tokens: 10_000 }
    const { additions, unfit } = repairSummary('Nothing.', many, rules)
    const listed = additions.at(-1) ?? ''
    expect(listed).toContain('npm test 39')
    expect(listed).not.toContain('npm test 0`')
    expect(rules.estimate.text(listed)).toBeLessThan(1_100)
    expect(unfit.length + listed.split('Its last error').length - 1).toBe(40)
  })

  it('are complete after one repair', () => {
    const rules = { ...gateRules, author: 'notes' as const, isNotes: true }
    const once = repairSummary(notes, facts, rules)
    expect(repairSummary(once.text, facts, rules)).toEqual({ text: once.text, additions: [], unfit: [] })
  })
})

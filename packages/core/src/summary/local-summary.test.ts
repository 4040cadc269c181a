import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CodingSession } from '../../test/summarize/coding-session.ts'
import { estimate, summaryRules } from '../../test/summarize/summary-rules.ts'
import { writeLocalSummary } from './local-summary.ts'
import { extractSessionFacts } from './session-facts.ts'
import { findSections } from './summary-prompt.ts'

function createWorkedSession(): CodingSession {
  const work = new CodingSession()
  work.says('Make the login work again.')
  work.reads('/app/src/login.ts', 'export function login() {}\n')
  work.runs('cd /app && npm test | tail -3', 'FAIL login\nexpected 200, got 401', true)
  work.edits('/app/src/login.ts', 'if (!session) return refuse()')
  work.runs('npm test', 'all passed')
  work.lists([
    { content: 'Repair the session check', status: 'completed' },
    { content: 'Write a test for expired sessions', status: 'in_progress' },
    { content: 'Update the notes', status: 'pending' },
  ])
  work.runs('npm run lint', 'src/login.ts:3 unused name', true)
  work.says('Bitte auch die Fehlermeldung\n\n\nübersetzen.')
  work.answers('The message is next.')
  return work
}

describe('the local summary', () => {
  it('tells a session in nine sections', () => {
    expect(
      writeLocalSummary(extractSessionFacts(createWorkedSession().history), summaryRules).text,
    ).toBe(`Summary:

1. Primary request and intent
- First request: "Make the login work again."
- Latest message, [2]: "Bitte auch die Fehlermeldung


übersetzen."

2. Key technical concepts
- Files worked with: 1 .ts
- \`npm test\`: run 2 times, last time succeeded

3. Files and code sections
- /app/src/login.ts: edited once, read once; newest text put there: if (!session) return refuse()

4. Errors and fixes
- \`npm run lint\` failed and has not succeeded since. Its last error:
src/login.ts:3 unused name
- \`npm test\` failed and has succeeded since after changes to login.ts. Its last error:
FAIL login
expected 200, got 401

5. Problem solving
- Of the commands that failed, 1 succeeded later and 1 did not (section 4).
- Done: Repair the session check

6. All user messages
[1] Make the login work again.
[2] Bitte auch die Fehlermeldung


übersetzen.

7. Pending tasks
- In work: Write a test for expired sessions
- Update the notes
The list is older than the latest message.

8. Current work
The model's latest words:
The message is next.
The latest calls, oldest first:
- Read /app/src/login.ts: succeeded
- Bash cd /app && npm test | tail -3: failed
- Edit /app/src/login.ts: succeeded
- Bash npm test: succeeded
- TodoWrite: succeeded
- Bash npm run lint: failed

9. Optional next step
The latest request: "Bitte auch die Fehlermeldung


übersetzen."`)
  })

  it('looks ahead at its end where newer messages follow', () => {
    const { text } = writeLocalSummary(extractSessionFacts(createWorkedSession().history), {
      ...summaryRules,
      form: 'up_to',
    })
    expect(text.match(/^[89]\. .*$/gm)).toEqual(['8. Work completed', '9. Context for continuing work'])
  })

  it('says of nothing that there is nothing', () => {
    const { text } = writeLocalSummary(extractSessionFacts([]), summaryRules)
    expect(text.match(/^(?!\d\.|Summary:).+$/gm)).toEqual([
      'The log has no message of the user.',
      'Nothing on record.',
      'Nothing on record.',
      'Nothing on record.',
      'Nothing on record.',
      'Nothing on record.',
      'No list of tasks is on record.',
      'Nothing on record.',
      'Nothing is asked for: no request is on record.',
    ])
  })

  it('names the task in work as next where the list is newer than the latest message', () => {
    const work = createWorkedSession()
    work.lists([
      { content: 'Update the notes', status: 'pending' },
      { content: 'Translate the message', status: 'in_progress' },
    ])
    const { text } = writeLocalSummary(extractSessionFacts(work.history), summaryRules)
    expect(/7\. [\s\S]*?(?=8\.)/.exec(text)?.[0]).toBe(
      '7. Pending tasks\n- Update the notes\n- In work: Translate the message\n\n',
    )
    expect(text).toContain('9. Optional next step\nNext on the list: Translate the message\n')
  })

  it('says that a list is done when all of it is', () => {
    const work = new CodingSession()
    work.lists([{ content: 'one', status: 'completed' }])
    expect(writeLocalSummary(extractSessionFacts(work.history), summaryRules).text).toContain(
      '7. Pending tasks\nEvery task on the list is done.\n',
    )
  })

  it('quotes a summary whose records are not in the log, cut to a limit', () => {
    const work = new CodingSession()
    work.compacts(`Summary:\nThe port is 5417. ${'More. '.repeat(5_000)}`)
    work.says('Go on.')
    const { text, tokens } = writeLocalSummary(extractSessionFacts(work.history), summaryRules)
    expect([text.includes('The port is 5417.'), tokens < 4_000]).toEqual([true, true])
  })
})

describe('when room is short', () => {
  function crowded(): CodingSession {
    const work = new CodingSession()
    work.says('Rename the parser.')
    for (let at = 0; at < 60; at += 1) {
      work.says(`Message ${at}: ${'some words of the person '.repeat(20)}`)
      work.edits(`/app/src/file-${at}.ts`, `const changed${at} = ${at}\n${'more code here\n'.repeat(30)}`)
      work.reads(`/app/lib/read-${at}.ts`, 'x\n'.repeat(at))
    }
    work.runs('npm test', `the end of an error ${'e'.repeat(700)}`, true)
    work.says('And now the lexer.')
    work.answers('Working on it. '.repeat(200))
    return work
  }

  it.each([600, 1_500, 3_000, 6_000, 12_000, 20_000])('fits %d tokens, headings and all', (tokens) => {
    const made = writeLocalSummary(extractSessionFacts(crowded().history), { ...summaryRules, tokens })
    expect(made.tokens).toBe(estimate.text(made.text))
    expect([made.tokens <= tokens, findSections(made.text).length]).toEqual([true, 9])
  })

  it('keeps first and newest request and the open error, then every message, then every changed file', () => {
    const facts = extractSessionFacts(crowded().history)
    const within = (tokens: number): readonly boolean[] => {
      const { text } = writeLocalSummary(facts, { ...summaryRules, tokens })
      return [
        text.includes('Rename the parser.') && text.includes('[62] And now the lexer.'),
        text.includes(facts.commands[0]?.error ?? '?'),
        facts.messages.every(({ uuid, text: said }) => text.includes(uuid) || text.includes(said)),
        facts.messages.every(({ text: said }) => text.includes(said)),
        Array.from({ length: 60 }, (_, at) => text.includes(`/app/src/file-${at}.ts`)).every(Boolean),
      ]
    }
    expect([1_500, 6_000, 12_000, 20_000].map(within)).toEqual([
      [true, true, false, false, false],
      [true, true, true, false, true],
      [true, true, true, true, true],
      [true, true, true, true, true],
    ])
  })

  it('fits whatever single thing is too large for it', () => {
    const work = new CodingSession()
    const huge = 'long/'.repeat(20_000)
    work.says(huge)
    work.edits(`/${huge}a.ts`, huge)
    work.runs(huge, huge, true)
    work.lists([{ content: huge, status: 'pending' }])
    work.answers(huge)
    expect(
      writeLocalSummary(extractSessionFacts(work.history), { ...summaryRules, tokens: 3_000 }).tokens,
    ).toBeLessThan(3_000)
  })

  it('names what it leaves out', () => {
    const facts = extractSessionFacts(crowded().history)
    const { text, leftOut } = writeLocalSummary(facts, { ...summaryRules, tokens: 1_500 })
    const missing = facts.messages.filter(({ uuid }) => leftOut.includes(uuid)).length
    expect([missing > 0, text.includes(`(${missing} more in the transcript: `)]).toEqual([true, true])
  })
})

describe('of any session', () => {
  const words = fc.string({ unit: 'grapheme', maxLength: 300 })

  it('it is within its tokens, the same every time, and holds every message where there is room', () => {
    fc.assert(
      fc.property(
        fc.array(words, { maxLength: 12 }),
        fc.integer({ min: 400, max: 4_000 }),
        (said, tokens) => {
          const work = new CodingSession()
          for (const [at, text] of said.entries()) {
            work.says(text)
            work.edits(`/src/${at}.ts`, text)
            work.runs(text, text, at % 3 === 0)
          }
          const facts = extractSessionFacts(work.history)
          const made = writeLocalSummary(facts, { ...summaryRules, tokens })
          expect(made).toEqual(
            writeLocalSummary(extractSessionFacts(work.history), { ...summaryRules, tokens }),
          )
          expect(made.tokens).toBeLessThanOrEqual(tokens)
          const roomy = writeLocalSummary(facts, summaryRules).text
          expect(facts.messages.filter(({ text }) => !roomy.includes(text))).toEqual([])
        },
      ),
      { numRuns: 60 },
    )
  })
})

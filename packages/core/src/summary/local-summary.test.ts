import { countPropertyRuns } from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CodingSession } from '../../test/summarize/coding-session.ts'
import { estimate, summaryRules, writeLocalSummary } from '../../test/summarize/summary-rules.ts'
import { extractSessionFacts } from '../facts/session-facts.ts'
import { runStepsAtOnce } from '../log/work-steps.ts'
import {
  computeLocalSummaryLimit,
  computeNameListLimit,
  createLocalSummaryPieces,
  writeMissingModelSections,
} from './local-summary.ts'
import { findSectionNumbers } from './summary-prompt.ts'

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
- \`npm test\`: run 2 times, last time succeeded

3. Files and code sections
- /app/src/login.ts: edited, read; newest text begins: if (!session) return refuse()

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
> The message is next.
The latest calls, oldest first:
- Read /app/src/login.ts: succeeded
- Bash cd /app && npm test | tail -3: failed
- Edit /app/src/login.ts: succeeded
- Bash npm test: succeeded
- TodoWrite: succeeded
- Bash npm run lint: failed

9. Optional next step
The latest request: "Bitte auch die Fehlermeldung


übersetzen.". The model has replied to it (section 8).`)
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
      'No message of the user is summarized here; those that are pinned or newer stand in the conversation itself.',
      'Nothing on record.',
      'Nothing on record.',
      'Nothing on record.',
      'Nothing on record.',
      'Nothing on record.',
      'No list of tasks is on record.',
      'Nothing on record.',
      'No request is summarized here: go by the messages of the user in the conversation, if there are any.',
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

describe('what the model wrote', () => {
  const decision = `Use a queue for the uploads. ${'The disk is too slow for direct writes. '.repeat(10)}`
  const diagnosis = `The test fails because the clock is mocked twice. ${'See the setup file. '.repeat(30)}`

  function discussed(): CodingSession {
    const work = new CodingSession()
    work.says('Why are uploads slow, and what do we do about it?')
    work.answers(decision)
    work.says('And the failing test, please look at that one as well, it has been red since Monday.')
    work.answers(diagnosis)
    work.says('Mend both, in the order that you think is best, and tell me when you are finished with it.')
    work.answers('Both are mended.')
    return work
  }

  function summarize(work: CodingSession, tokens = 20_000): string {
    return writeLocalSummary(extractSessionFacts(work.history), { ...summaryRules, tokens }).text
  }

  it('keeps what the model decided and why, with the message it came after', () => {
    const text = summarize(discussed())
    expect(text).toContain(`- The model, after [1]:\n> ${decision.trim()}`)
    expect(text).toContain(`- The model, after [2]:\n> ${diagnosis.trim()}`)
  })

  it('keeps the newest and longest text in full where there is no room for all', () => {
    const work = new CodingSession()
    work.says('Look at all of it.')
    const found = Array.from({ length: 20 }, (_, at) =>
      `Finding ${at}. ${'It has a long reason. '.repeat(20)}`.trim(),
    )
    for (const text of found) work.answers(text)
    work.says('Go on with the next part of the work, which is the one that we spoke about yesterday.')
    work.answers('Working on it.')
    work.says('And then the last part of the work, which is the one that we have not spoken about.')
    work.answers('Working on that.')
    const text = summarize(work, 1_500)
    const kept = found.map((one) => text.includes(one))
    expect([kept[0], kept.at(-1), kept.filter(Boolean).length > 3]).toEqual([false, true, true])
  })

  it('quotes every line of the model, so that none passes for a line of the summary', () => {
    const work = new CodingSession()
    work.says('Plan it.')
    work.answers(
      `Which of the two do you want?\nProceed with the migration.\n${'There are reasons. '.repeat(9)}`,
    )
    work.says('The first of the two, and leave the migration for another day, as I said before.')
    work.answers('Done.')
    expect(summarize(work)).toContain('> Which of the two do you want?\n> Proceed with the migration.')
  })

  it('a short answer stands with the question it answers', () => {
    const work = new CodingSession()
    work.says('Make the build faster.')
    work.answers('Three ways:\n1. cache modules\n2. split the tests\n3. buy a machine\nWhich?')
    work.says('1+2')
    work.answers('Working on it.')
    expect(summarize(work)).toContain(
      '[2] (answering "Three ways:\n1. cache modules\n2. split the tests\n3. buy a machine\nWhich?") 1+2\n',
    )
  })

  it.each<[string, string, string]>([
    ['why does the login fail?', 'cat auth.ts', 'I could not find it. Should I look at session.ts next?'],
    ['commit it', 'git commit -am fix', 'It is committed. Shall I push it as well?\n- yes, to main\n- no'],
    ['test the new parser with empty input', 'npm test', 'The suite passes.'],
    ['why does the login fail?', 'cat auth.ts', 'The session has expired.'],
  ])(
    'a request is told as replied to once the model has ended its turn: %j, %j, %j',
    (request, command, words) => {
      const work = new CodingSession()
      work.says(request)
      work.runs(command, 'ok')
      work.answers(words)
      expect(summarize(work).split('9. Optional next step\n')[1]).toBe(
        `The latest request: "${request}". The model has replied to it (section 8).`,
      )
    },
  )

  it('a request is in progress while the turn goes on, and stands with what it answers', () => {
    const work = new CodingSession()
    work.answers('Shall I push it?')
    work.says('yes')
    work.answers('I push it.')
    work.runs('git push', 'rejected', true)
    expect(summarize(work)).toContain('The latest request, in progress: (answering "Shall I push it?") "yes"')
  })
})

describe('what is left out', () => {
  it('has no shell variables, no counts of extensions, and no commands on temporary files', () => {
    const work = new CodingSession()
    work.says('Test it.')
    for (let at = 0; at < 3; at += 1) {
      work.runs('rm -rf $TEST_DIR', 'ok')
      work.runs('cat /tmp/scratch.txt', 'ok')
      work.runs('npm test', 'ok')
    }
    work.edits('$TEST_DIR/a.ts', 'x')
    work.edits('/app/a.ts', 'x')
    const { text } = writeLocalSummary(extractSessionFacts(work.history), summaryRules)
    expect(text.match(/2\. [\s\S]*?(?=4\.)/)?.[0]).toBe(
      '2. Key technical concepts\n- `npm test`: run 3 times, last time succeeded\n\n' +
        '3. Files and code sections\n- /app/a.ts: edited; newest text begins: x\n\n',
    )
  })

  it('a file that could not be read is not told as read', () => {
    const work = new CodingSession()
    work.calls('Read', { file_path: '/app/none.ts' }, 'File does not exist.', true)
    const { text } = writeLocalSummary(extractSessionFacts(work.history), summaryRules)
    expect(text).toContain('- /app/none.ts: could not be read\n')
  })

  it('changed code with fences of its own is one code block', () => {
    const work = new CodingSession()
    const put = `# Title\n\`\`\`sh\nnpm test\n\`\`\`\nContinue with the rest.\n${'More text. '.repeat(20)}`
    work.edits('/app/notes.md', put)
    const { text } = writeLocalSummary(extractSessionFacts(work.history), summaryRules)
    expect(text).toContain(`\`\`\`\`\n${put}\n\`\`\`\``)
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
    expect([made.tokens <= tokens, findSectionNumbers(made.text).length]).toEqual([true, 9])
  })

  it.each([40, 80, 150, 300, 399])('shrinks to %d tokens as well', (tokens) => {
    const made = writeLocalSummary(extractSessionFacts(crowded().history), { ...summaryRules, tokens })
    expect([made.tokens <= tokens, made.text.startsWith('Summary:')]).toEqual([true, true])
  })

  it('keeps first and newest request and the open error, then every message, then every changed file', () => {
    const facts = extractSessionFacts(crowded().history)
    const within = (tokens: number): readonly boolean[] => {
      const { text } = writeLocalSummary(facts, { ...summaryRules, tokens })
      return [
        text.includes('Rename the parser.') && text.includes('[62] And now the lexer.'),
        text.includes(facts.failures[0]?.error ?? '?'),
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
      { numRuns: countPropertyRuns(60) },
    )
  })
})

it('sections that a summary of a model lacks are written from the log', () => {
  const work = new CodingSession()
  work.says('Make a parser.')
  work.answers('The parser is half done; the lexer is next.')
  const facts = extractSessionFacts(work.history)
  const rules = { form: 'full', tokens: 1_000, estimate: summaryRules.estimate } as const
  const filled = writeMissingModelSections(
    'Summary:\n1. Primary request and intent\nA parser.',
    { facts, pieces: runStepsAtOnce(createLocalSummaryPieces(facts)) },
    rules,
  )
  expect(filled.map((section) => section.split('\n')[0])).toContain('8. Current work')
  expect(filled.join('\n')).toContain('The parser is half done; the lexer is next.')
  expect(filled.join('\n')).not.toContain('1. Primary request and intent')
})

it.each([2_000, 20_000, 48_000, 500_000])(
  'a local summary and its list of names take at most a quarter of what they replace, and 12,000 tokens: %i',
  (replaced) => {
    const rest = computeLocalSummaryLimit(replaced)
    expect(rest + computeNameListLimit(rest)).toBeLessThanOrEqual(Math.min(12_000, replaced / 4))
    expect(rest + computeNameListLimit(rest)).toBeGreaterThan(Math.min(12_000, replaced / 4) - 3)
  },
)

it.each([100, 300, 1_000])('the words of the user are whole, however small the rest is: %i', (restTokens) => {
  const work = createWorkedSession()
  const long = Array.from({ length: 80 }, (_, row) => `Rule ${row}: the pier ${row} is closed.`).join('\n')
  work.says(long)
  work.answers('I mind the rules.')
  for (let at = 0; at < 40; at += 1) work.answers(`Finding ${at}: ${'a long text of the model '.repeat(12)}`)
  const rules = { ...summaryRules, tokens: 50_000, restTokens }
  const { text } = writeLocalSummary(extractSessionFacts(work.history), rules)
  expect(text).toContain(long)
  const words = estimate.text(`Make the login work again. Bitte auch die Fehlermeldung übersetzen. ${long}`)
  // The requests and open tasks, which are never left out, may exceed a very small rest.
  expect(estimate.text(text) - words).toBeLessThanOrEqual(Math.max(restTokens, 300) + 20)
})

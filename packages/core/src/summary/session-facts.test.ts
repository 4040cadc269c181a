import { describe, expect, it } from 'vitest'
import { CodingSession } from '../../test/summarize/coding-session.ts'
import { estimate } from '../../test/summarize/summary-rules.ts'
import { listToolRuns } from '../log/tool-calls.ts'
import {
  collectFailedCalls,
  collectFailingCommands,
  extractSessionFacts,
  formatUserPrompt,
  listRequiredTexts,
  normalizeCommand,
} from './session-facts.ts'

const rules = { eachTokens: 2_000, estimate }

describe('user messages', () => {
  it('is theirs alone: no summaries, no engine, no tools, no commands', () => {
    const work = new CodingSession()
    work.says('Build it.')
    work.builder.user('a reminder', { isMeta: true })
    work.builder.user('<local-command-stdout>ok</local-command-stdout>')
    work.runs('ls', 'a.ts')
    work.compacts('Summary:\n6. All user messages\n[1] Invented.')
    work.says('Go on.')
    expect(extractSessionFacts(work.history).messages.map(({ text }) => text)).toEqual([
      'Build it.',
      'Go on.',
    ])
  })

  it('is a correction where the model had been stopped', () => {
    const work = new CodingSession()
    work.says('Build it.')
    work.answers('Building.')
    work.builder.user('[Request interrupted by user]')
    work.says('Not like that.')
    work.answers('How then?')
    work.says('Like this.')
    const corrections = extractSessionFacts(work.history).messages.map(({ isCorrection }) => isCorrection)
    expect(corrections).toEqual([false, true, false])
  })

  it('is held whole up to 4,000 characters, by both ends and its id beyond', () => {
    const at = { uuid: 'u1', place: 0, isCorrection: false }
    const whole = { ...at, text: 'é'.repeat(4_000) }
    const long = { ...at, text: `${'a'.repeat(2_001)}${'b'.repeat(2_000)}` }
    expect([listRequiredTexts(whole, rules), formatUserPrompt(whole, rules)]).toEqual([
      [whole.text],
      whole.text,
    ])
    expect(listRequiredTexts(long, rules)).toEqual(['a'.repeat(500), 'b'.repeat(500), 'u1'])
    expect(formatUserPrompt(long, rules)).toBe(
      `${'a'.repeat(500)}\n[… 3001 characters, in full in record u1 …]\n${'b'.repeat(500)}`,
    )
  })
})

describe('files', () => {
  it('have what was done to them and their last state, newest first', () => {
    const work = new CodingSession()
    work.reads('/src/a.ts', 'one\ntwo\n')
    work.edits('/src/a.ts', 'const a = 1')
    work.calls('Write', { file_path: '/src/new.ts', content: 'export {}' }, 'ok')
    work.edits('/src/a.ts', 'const a = 2', true)
    work.calls(
      'patch',
      { input: '*** Begin Patch\n*** Update File: src/p.ts\n*** Add File: src/q.ts\n' },
      'ok',
    )
    const told = extractSessionFacts(work.history).files.map(
      ({ path, edits, refusedEdits, reads, isCreated: isMade, newestText: put, linesRead }) =>
        [path, edits, refusedEdits, reads, isMade, put, linesRead] as const,
    )
    expect(told).toEqual([
      ['src/p.ts', 1, 0, 0, false, null, null],
      ['src/q.ts', 1, 0, 0, true, null, null],
      ['/src/a.ts', 1, 1, 1, false, 'const a = 1', 2],
      ['/src/new.ts', 1, 0, 0, true, 'export {}', null],
    ])
  })
})

describe('the rest', () => {
  it('has the plan, the latest words, and a summary of what the log does not hold', () => {
    const work = new CodingSession()
    work.compacts('Summary:\nof another file')
    work.calls('ExitPlanMode', { plan: 'First this.' }, 'ok')
    work.answers('Started.')
    const { plan, lastAnswer, earlierSummary: earlier } = extractSessionFacts(work.history)
    expect([plan?.text, lastAnswer?.text, earlier?.text]).toEqual([
      'First this.',
      'Started.',
      'Summary:\nof another file',
    ])
  })

  it('has no secrets', () => {
    const work = new CodingSession()
    const secret = `ghp_${'aB3'.repeat(12)}`
    work.says(`use ${secret}`)
    work.edits('/src/a.ts', `const token = '${secret}'`)
    work.runs(`curl -H "authorization: Bearer ${secret}"`, `refused ${secret}`, true)
    work.lists([{ content: `rotate ${secret}`, status: 'pending' }])
    work.answers(`used ${secret}`)
    const { runs: _, ...facts } = extractSessionFacts(work.history)
    expect(JSON.stringify(facts)).not.toContain(secret)
  })
})

const same = (text: string): string => text

describe('the normal form of a command', () => {
  it.each([
    ['npm test', 'npm test'],
    ['cd /a/b && npm test', 'npm test'],
    ['cd "/a b" && cd c && npm test', 'npm test'],
    ['npm test 2>&1 | tail -20', 'npm test 2>&1'],
    ['npm test | head -n 5 | tail -3', 'npm test'],
    ['  npm test \n', 'npm test'],
    ['cd /a', 'cd /a'],
    ['npm test | grep tail', 'npm test | grep tail'],
  ])('%j is %j', (command, plain) => {
    expect(normalizeCommand(command)).toBe(plain)
  })
})

describe('commands that failed', () => {
  it('have their last error, how often they failed, and what was changed since', () => {
    const work = new CodingSession()
    work.runs('npm test', 'first error', true)
    work.edits('/src/a.ts', 'x')
    work.runs('cd /src && npm test | tail -5', 'second error', true)
    work.edits('/src/b.ts', 'y')
    work.edits('/src/c.ts', 'z', true)
    const [command] = collectFailingCommands(listToolRuns(work.history), same)
    expect(command).toMatchObject({
      command: 'npm test',
      error: 'second error',
      failures: 2,
      isSettled: false,
      editedSince: ['/src/b.ts'],
    })
  })

  it('are settled when the same command succeeds, with the changes that led there', () => {
    const work = new CodingSession()
    work.runs('npm test', 'error', true)
    work.edits('/src/a.ts', 'x')
    work.runs('npm run lint', 'fine')
    work.runs('npm test', 'fine')
    work.edits('/src/late.ts', 'x')
    expect(collectFailingCommands(listToolRuns(work.history), same)).toMatchObject([
      { command: 'npm test', isSettled: true, editedSince: ['/src/a.ts'] },
    ])
  })

  it('fail again after they were settled', () => {
    const work = new CodingSession()
    work.runs('make', 'one', true)
    work.runs('make', 'fine')
    work.runs('make', 'two', true)
    expect(collectFailingCommands(listToolRuns(work.history), same)).toMatchObject([
      { error: 'two', isSettled: false },
    ])
  })

  it('keep the end of a long error, white space at its end included', () => {
    const work = new CodingSession()
    const output = `${'x'.repeat(700)}${'y'.repeat(600)}\n\n`
    work.runs('make', output, true)
    expect(collectFailingCommands(listToolRuns(work.history), same)[0]?.error).toBe(`${'y'.repeat(600)}\n\n`)
  })

  it('are known by an exit code where nothing marks them', () => {
    const work = new CodingSession()
    work.runs('make', 'Wall time: 1\nProcess exited with code 2\nOutput:\nno rule')
    work.runs('ls', 'Process exited with code 0\nOutput:')
    work.runs('grep -r nothing', 'Process exited with code 1\nOutput:\n')
    expect(collectFailingCommands(listToolRuns(work.history), same).map(({ command }) => command)).toEqual([
      'make',
    ])
  })
})

describe('other calls that failed', () => {
  it('stand until the same tool works on the same file', () => {
    const work = new CodingSession()
    work.edits('/src/a.ts', 'x', true)
    work.edits('/src/b.ts', 'x', true)
    work.edits('/src/a.ts', 'x')
    expect(collectFailedCalls(listToolRuns(work.history), same)).toMatchObject([
      { tool: 'Edit', target: '/src/b.ts' },
    ])
  })
})

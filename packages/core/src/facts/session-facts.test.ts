import { describe, expect, it } from 'vitest'
import { CodingSession } from '../../test/summarize/coding-session.ts'
import { createFactsKeeper, extractSessionFacts } from './session-facts.ts'

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
})

describe('a tool call that the user refused', () => {
  const refused =
    "The user doesn't want to proceed with this tool use. The tool use was rejected. STOP what you are doing and wait."

  it('is told as refused, never as failing', () => {
    const work = new CodingSession()
    work.runs('npm test', 'one test failed', true)
    work.runs('git push', refused, true)
    work.edits('/src/a.ts', 'x', true)
    const { failures, failedCalls, messages } = extractSessionFacts(work.history)
    expect(failures.map(({ command }) => command)).toEqual(['npm test'])
    expect(failedCalls.map(({ target, isRefused }) => [target, isRefused])).toEqual([
      ['/src/a.ts', false],
      ['git push', true],
    ])
    expect(messages).toEqual([])
  })

  it('is settled when the user lets it run later', () => {
    const work = new CodingSession()
    work.runs('git push', refused, true)
    work.runs('git push', 'pushed')
    expect(extractSessionFacts(work.history).failedCalls).toEqual([])
  })
})

describe('a text with characters that cannot be sent', () => {
  it('is freed of them', () => {
    const work = new CodingSession()
    work.says('\u001b[31mred\u001b[0m\u0000 and \ud83d half, 😀 whole\ttab')
    expect(extractSessionFacts(work.history).messages[0]?.text).toBe('red and \ufffd half, 😀 whole\ttab')
  })
})

describe('files', () => {
  it('are one under the whole path and the path relative to the working directory', () => {
    const work = new CodingSession()
    const edit = (id: string, path: string): void => {
      const input = { file_path: path, old_string: 'a', new_string: 'b' }
      work.builder.assistant(id, [{ type: 'tool_use', id, name: 'Edit', input }], { cwd: '/shop' })
      work.builder.result(id, 'ok', { cwd: '/shop' })
    }
    edit('one', 'src/a.ts')
    edit('two', '/shop/src/a.ts')
    edit('three', 'src/../src/a.ts')
    expect(extractSessionFacts(work.history).files).toMatchObject([{ path: '/shop/src/a.ts', edits: 3 }])
  })

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
      ({ path, edits, refusedEdits, reads, isNew: isMade, newestText: put, linesRead }) =>
        [path, edits, refusedEdits, reads, isMade, put, linesRead] as const,
    )
    expect(told).toEqual([
      ['src/q.ts', 1, 0, 0, true, null, null],
      ['src/p.ts', 1, 0, 0, false, null, null],
      ['/src/a.ts', 1, 1, 1, false, 'const a = 1', 2],
      ['/src/new.ts', 1, 0, 0, true, 'export {}', null],
    ])
  })
})

describe('the todo list', () => {
  it('is that of the tool which the policy names, whatever its input is called', () => {
    const work = new CodingSession()
    work.calls('board', { cards: [{ content: 'Write the parser', status: 'pending' }] }, 'ok')
    const keeper = createFactsKeeper({ tools: { todoTools: ['board'] } })
    for (const record of work.history) keeper.add(record)
    expect(keeper.read().todos).toEqual([{ text: 'Write the parser', status: 'pending' }])
    expect(extractSessionFacts(work.history).todos).toEqual([])
  })

  it('is older than an instruction, but not than an answer or the refusal of a call', () => {
    const work = new CodingSession()
    work.says('Build it.')
    work.lists([{ content: 'parse', status: 'pending' }])
    work.calls('AskUserQuestion', { question: 'Tabs?' }, 'User answered: tabs')
    expect(extractSessionFacts(work.history).areTodosOlder).toBe(false)
    work.says('Now something else.')
    expect(extractSessionFacts(work.history).areTodosOlder).toBe(true)
  })
})

describe('the rest', () => {
  it('has the plan, the latest words, and a summary of what the log does not hold', () => {
    const work = new CodingSession()
    work.compacts('Summary:\nof another file')
    work.calls('ExitPlanMode', { plan: 'First this.' }, 'ok')
    work.answers('Started.')
    const { plan, texts, earlierSummary: earlier } = extractSessionFacts(work.history)
    expect([plan?.text, texts.at(-1)?.text, earlier?.text]).toEqual([
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
    const { calls: _calls, results: _results, turn: _turn, ...facts } = extractSessionFacts(work.history)
    expect(JSON.stringify(facts)).not.toContain(secret)
  })
})

describe('commands that failed', () => {
  it('are not settled by a run that ends well and prints a failure', () => {
    const work = new CodingSession()
    work.runs('npm test', 'error', true)
    work.runs('npm test | tail -3', 'FAIL src/a.test.ts')
    expect(extractSessionFacts(work.history).failures).toMatchObject([{ isSettled: false }])
    work.runs('npm test | tail -3', '12 passed')
    expect(extractSessionFacts(work.history).failures).toMatchObject([{ isSettled: true }])
  })

  it('have their last error, how often they failed, and what was changed since', () => {
    const work = new CodingSession()
    work.runs('npm test', 'first error', true)
    work.edits('/src/a.ts', 'x')
    work.runs('cd /src && npm test | tail -5', 'second error', true)
    work.edits('/src/b.ts', 'y')
    work.edits('/src/c.ts', 'z', true)
    const [command] = extractSessionFacts(work.history).failures
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
    expect(extractSessionFacts(work.history).failures).toMatchObject([
      { command: 'npm test', isSettled: true, editedSince: ['/src/a.ts'] },
    ])
  })

  it('fail again after they were settled', () => {
    const work = new CodingSession()
    work.runs('make', 'one', true)
    work.runs('make', 'fine')
    work.runs('make', 'two', true)
    expect(extractSessionFacts(work.history).failures).toMatchObject([{ error: 'two', isSettled: false }])
  })

  it('keep the end of a long error that says something', () => {
    const work = new CodingSession()
    const output = `${'x'.repeat(700)}${'y'.repeat(600)}\n\n`
    work.runs('make', output, true)
    expect(extractSessionFacts(work.history).failures[0]?.error).toBe('y'.repeat(600))
  })

  it('are known by an exit code where nothing marks them', () => {
    const work = new CodingSession()
    work.runs('make', 'Wall time: 1\nProcess exited with code 2\nOutput:\nno rule')
    work.runs('ls', 'Process exited with code 0\nOutput:')
    work.runs('grep -r nothing', 'Process exited with code 1\nOutput:\n')
    expect(extractSessionFacts(work.history).failures.map(({ command }) => command)).toEqual(['make'])
  })
})

describe('other calls that failed', () => {
  it('stand until the same tool works on the same file', () => {
    const work = new CodingSession()
    work.edits('/src/a.ts', 'x', true)
    work.edits('/src/b.ts', 'x', true)
    work.edits('/src/a.ts', 'x')
    expect(extractSessionFacts(work.history).failedCalls).toMatchObject([
      { tool: 'Edit', target: '/src/b.ts' },
    ])
  })
})

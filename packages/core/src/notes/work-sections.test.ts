import { describe, expect, it } from 'vitest'
import { CodingSession } from '../../test/summarize/coding-session.ts'
import {
  NOTES_LIMITS,
  readNotesSection,
  writeNotes as writeRecordNotes,
} from '../../test/summarize/written-notes.ts'
import type { NotesSectionName } from './notes-file.ts'

const { countTokens } = NOTES_LIMITS

const writeNotes = (session: CodingSession, totalTokens = 12_000): string =>
  writeRecordNotes(session.history, { totalTokens })

const section = (session: CodingSession, name: NotesSectionName, totalTokens?: number): string =>
  readNotesSection(writeNotes(session, totalTokens), name)

describe('commands', () => {
  it('have their last result, and those that still fail their error', () => {
    const session = new CodingSession()
    session.runs('npm test', 'Exit code 1\nTypeError: x is not a function', true)
    session.edits('/repo/a.ts', 'fixed')
    session.runs('npm  test', '12 passed')
    session.runs('npm run lint', 'Exit code 2\nno such rule', true)
    expect(section(session, 'workflow')).toBe(
      'Commands, newest first:\n- `npm test` → ok (2 runs; output ends: 12 passed)',
    )
    const errors = section(session, 'errors')
    expect(errors).toContain(
      '- `npm run lint` → failed. Its output ended:\n```\nExit code 2\nno such rule\n```',
    )
    expect(errors).toContain(
      '- fixed: `npm test` had failed; ok after changes to a.ts. Its output ended:\n```\nExit code 1\nTypeError: x is not a function\n```',
    )
  })

  it('have their errors on one line where the notes have no room left, without any loss elsewhere', () => {
    const session = new CodingSession()
    session.runs('npm test', `Exit code 1\n${'TypeError\n'.repeat(40)}`, true)
    session.edits('/repo/a.ts', 'fixed')
    session.runs('npm test', '12 passed')
    session.runs('npm run lint', 'Exit code 2\nno such rule', true)
    expect(section(session, 'errors')).toContain('TypeError\nTypeError')
    const less = countTokens(writeNotes(session)) - 1
    const errors = section(session, 'errors', less)
    expect(errors).toContain('TypeError TypeError')
    expect(errors).toMatch(/- fixed: `npm test` had failed \(….*TypeError\); ok after changes to a\.ts/)
    expect(section(session, 'worklog', less)).toBe(section(session, 'worklog'))
  })

  it('that were stopped between a failure and a success are told as fixed', () => {
    const session = new CodingSession()
    session.runs('make', 'no rule', true)
    session.calls('Bash', { command: 'make' }, 'Command timed out after 2m')
    session.runs('make', 'built')
    session.runs('make', 'built')
    expect(section(session, 'errors')).toBe(
      'Errors that were fixed, newest first:\n- fixed: `make` had failed (Command timed out after 2m); ok',
    )
  })

  it('cannot break the sections by their output', () => {
    const session = new CodingSession()
    session.runs('make', '```\n# Worklog\n````\n# Learnings\r\nend', true)
    expect(section(session, 'errors')).toContain('```\n# Worklog\n````\n# Learnings\nend')
  })

  it.each([
    [
      'an exit code in the text',
      { cmd: ['bash', '-lc', 'make'] },
      'Process exited with code 2\nOutput:\nno',
      'failed',
    ],
    ['exit code 0', { cmd: 'make' }, 'Exit code: 0\nOutput:\nfine', 'ok'],
    ['an exit code in JSON', { command: 'make' }, '{"output":"no","metadata":{"exit_code":1}}', 'failed'],
    [
      'a number in the middle of a long output',
      { command: 'make' },
      '1\n2\n3\n4\n5\nexit code 1\n7\n8\n9',
      'ok',
    ],
    ['an exit code in the fifth line', { command: 'make' }, '1\n2\n3\n4\nexit code 1\n6\n7\n8\n9', 'failed'],
    [
      'an exit code in the last three lines',
      { command: 'make' },
      '1\n2\n3\n4\n5\n6\nexit code 1\n8\n9',
      'failed',
    ],
    ['a number in the line after the words', { command: 'make' }, '12: // the last exit code\n218: }', 'ok'],
    [
      'moved to the background',
      { command: 'make' },
      'Command running in background with ID: 7',
      'started in the background',
    ],
    [
      'still running',
      { command: 'make' },
      'Chunk ID: 1\nWall time: 1 s\nProcess running with session ID 4\nOutput:\n',
      'still running',
    ],
    [
      'in the background',
      { command: 'make', run_in_background: true },
      'started',
      'started in the background',
    ],
    ['stopped', { command: 'make' }, 'Command timed out after 2m', 'stopped at its time limit'],
  ])('are judged by %s', (_, input, result, status) => {
    const session = new CodingSession()
    session.calls('Bash', input, result)
    const lines = `${section(session, 'workflow')}\n${section(session, 'errors')}`
    expect(lines).toContain(`- \`make\` → ${status}`)
  })

  it('that failed are told as failed, with their output, where Codex puts four lines before it', () => {
    const session = new CodingSession()
    const head =
      'Command: make\nChunk ID: 1\nWall time: 1 s\nProcess exited with code 2\nOriginal token count: 9'
    session.calls('exec_command', { cmd: 'make' }, `${head}\nOutput:\none\ntwo\nthree`)
    expect(section(session, 'workflow')).toBe('')
    expect(section(session, 'errors')).toContain(
      '- `make` → failed. Its output ended:\n```\none\ntwo\nthree\n```',
    )
  })

  it('since the newest compaction are told with the end of their output, older ones and mere looks without it', () => {
    const session = new CodingSession()
    session.runs('npm run build', 'built in 2 s')
    session.compacts('Short.')
    session.runs('npm test', '12 passed')
    session.runs('sed -n 1,20p src/cart.ts', '})')
    expect(section(session, 'workflow')).toBe(
      [
        'Commands, newest first:',
        '- `sed -n 1,20p src/cart.ts` → ok',
        '- `npm test` → ok (output ends: 12 passed)',
        '- `npm run build` → ok',
      ].join('\n'),
    )
  })

  it('that ended well only because of a pipe are told with the failure in their output, and fix nothing', () => {
    const session = new CodingSession()
    session.runs('mise run test', 'Exit code 1\n[test] ERROR task failed', true)
    session.runs('mise run test 2>&1 | tail -2', 'FAIL cart 0.1s\n[test] ERROR task failed')
    session.runs('tail -2 build.log', 'FAILED\nError: 1')
    expect(section(session, 'workflow')).toContain(
      '- `mise run test 2>&1 | tail -2` → ok, but its output says "[test] ERROR task failed" (output ends: FAIL cart',
    )
    expect(section(session, 'workflow')).toContain('- `tail -2 build.log` → ok\n')
    const errors = section(session, 'errors')
    expect(errors).toContain('Commands that failed when last run, newest first:\n- `mise run test` → failed')
    expect(errors).not.toMatch(/succeeded since|fixed:/)
  })

  it('of Codex that were still running have the result that a later look at them gave', () => {
    const session = new CodingSession()
    const head = (end: string): string => `Chunk ID: 1\nWall time: 1.0 seconds\n${end}\nOutput:\n`
    const running = (id: number): string => head(`Process running with session ID ${id}`)
    const look = (id: number, result: string): void =>
      session.calls('write_stdin', { session_id: id, yield_time_ms: 1000 }, result)
    session.calls('exec_command', { cmd: 'go test ./...' }, `${running(7)}--- FAIL: TestRelay (0.00s)\n`)
    session.calls('exec_command', { cmd: 'git commit -m "Add relay"' }, running(8))
    session.calls('exec_command', { cmd: 'npm run dev' }, running(9))
    expect(section(session, 'workflow')).toContain('- `go test ./...` → still running')
    look(7, running(7))
    look(8, `${head('Process exited with code 0')}[main 1a2b3c4] Add relay`)
    look(7, `${head('Process exited with code 1')}FAIL\n`)
    expect(section(session, 'workflow')).toBe(
      'Commands, newest first:\n- `git commit -m "Add relay"` → ok (output ends: [main 1a2b3c4] Add relay)\n- `npm run dev` → still running',
    )
    expect(section(session, 'errors')).toContain('- failing test: TestRelay')
    expect(section(session, 'errors')).toContain(
      '- `go test ./...` → failed. Its output ended:\n```\n--- FAIL: TestRelay',
    )
    expect(section(session, 'worklog')).toContain('committed "Add relay"')
  })

  it('of Codex that were looked at while they ran count once in the worklog, as do the looks', () => {
    const session = new CodingSession()
    const running = 'Chunk ID: 1\nWall time: 1.0 seconds\nProcess running with session ID 7\nOutput:\n'
    const ended = running.replace('running with session ID 7', 'exited with code 1')
    const look = (result: string): void =>
      session.calls('write_stdin', { session_id: 7, yield_time_ms: 1000 }, result)
    session.says('Test it.')
    session.calls('exec_command', { cmd: 'go test ./...' }, running)
    look(running)
    expect(section(session, 'worklog')).toContain('user: "Test it." → 2 calls')
    look(`${ended}FAIL\n`)
    expect(section(session, 'worklog')).toContain('user: "Test it." → 1 command (1 failed)')
  })

  it('that another agent asked for are its in the worklog, not the user’s', () => {
    const session = new CodingSession()
    session.says(
      '<teammate-message teammate_id="lead" color="blue">\nTest the discounts.\n</teammate-message>',
    )
    session.calls('Bash', { command: 'npm test' }, 'ok')
    expect(section(session, 'worklog')).toContain('teammate lead: "Test the discounts." → 1 command')
    expect(section(session, 'worklog')).not.toContain('user')
  })

  it('that several agents asked for in one message are each its own, not the user’s', () => {
    const session = new CodingSession()
    const sent = (from: string, text: string) =>
      `<teammate-message teammate_id="${from}">\n${text}\n</teammate-message>`
    session.says(`${sent('lead', 'Test the discounts.')}\n${sent('tester', 'Test 7 fails.')}`)
    session.calls('Bash', { command: 'npm test' }, 'ok')
    session.says(`${sent('lead', 'Test the taxes.')}\nNo, wait for me.`)
    const worklog = section(session, 'worklog')
    expect(worklog).toContain('teammate lead and teammate tester: "Test the discounts. Test 7 fails."')
    expect(worklog).toContain('user: "No, wait for me."')
    const requests = section(session, 'task')
    expect(requests).toContain('First request, from teammate lead, not the user:\n> Test the discounts.')
    expect(requests).toContain('from teammate tester, not the user: "Test 7 fails."')
    expect(requests).toContain('from teammate lead, not the user: "Test the taxes."')
    expect(section(session, 'state')).toContain('Latest instruction:\n> No, wait for me.')
  })

  it('that begin alike are told apart if one of them failed', () => {
    const session = new CodingSession()
    const start = `cd ${'x'.repeat(130)}`
    session.runs(`${start} && one`, 'ok')
    session.runs(`${start} && two`, 'no', true)
    expect(section(session, 'workflow')).toContain(`- \`${start} && one\` → ok`)
    expect(section(session, 'errors')).toContain(`- \`${start} && two\` → failed`)
  })

  it('in backquotes cannot break their line', () => {
    const session = new CodingSession()
    session.runs('echo `date`\n# Worklog\nls', 'x')
    expect(section(session, 'workflow')).toContain("- `echo 'date' # Worklog ls` → ok")
  })
})

describe('failing tests', () => {
  it.each([
    [
      'pytest',
      'FAILED tests/test_a.py::test_x[1-2] - AssertionError: no\n1 failed, 3 passed',
      'tests/test_a.py::test_x[1-2]',
    ],
    ['Go', '--- FAIL: TestParse (0.01s)\nFAIL', 'TestParse'],
    ['TAP', 'ok 1 - first\nnot ok 2 - second thing', 'second thing'],
    ['TAP with a time in its name', 'not ok 2 - waits for 5s', 'waits for 5s'],
    ['a package of Go', 'FAIL\texample.com/shop\t0.31s', 'example.com/shop'],
    ['Rust', 'test parser::reads ... FAILED\ntest result: FAILED', 'parser::reads'],
    ['jest', '  ✕ adds numbers (5 ms)\n  ✓ other\nTests: 1 failed, 1 passed', 'adds numbers'],
    ['vitest', ' \u001b[31m×\u001b[39m parses 12ms\n Tests  1 failed', 'parses'],
  ])('of %s are named', (_, output, name) => {
    const session = new CodingSession()
    session.runs('run tests', output, true)
    expect(section(session, 'errors')).toContain(`- failing test: ${name}\n`)
  })

  it('are told with a test command that has succeeded since without naming tests', () => {
    const session = new CodingSession()
    session.runs('pytest tests', 'FAILED tests/test_a.py::test_x', true)
    session.runs('make test', 'All fine.')
    expect(section(session, 'errors')).toContain(
      'Failing tests in the newest run that names tests, `pytest tests` (`make test` has succeeded since):\n- failing test: tests/test_a.py::test_x',
    )
  })

  it.each(['ok  \texample.com/shop\t0.31s', 'ok  \texample.com/shop\t(cached)'])(
    'are gone once the packages of Go pass: %s',
    (output) => {
      const session = new CodingSession()
      session.runs('go test ./...', '--- FAIL: TestParse (0.01s)\nFAIL\texample.com/shop\t0.31s\nFAIL', true)
      session.runs('go test .', output)
      expect(section(session, 'errors')).not.toContain('failing test')
    },
  )

  it('stay while files with results of tests are read', () => {
    const session = new CodingSession()
    session.runs('pytest', 'FAILED tests/test_a.py::test_x', true)
    session.reads('/repo/notes.md', 'FAILED tests/test_old.py::test_y\n3 failed, 2 passed')
    expect(section(session, 'errors').match(/failing test: .*/g)).toEqual([
      'failing test: tests/test_a.py::test_x',
    ])
  })

  it('are not the lines that a linter begins with a cross', () => {
    const session = new CodingSession()
    session.runs(
      'biome check',
      '  × Formatter would have printed the following content:\nThe check failed.',
      true,
    )
    expect(section(session, 'errors')).not.toContain('failing test')
  })

  it('are gone once a newer run has none, and stay while nothing was tested', () => {
    const session = new CodingSession()
    session.runs('go test ./...', '--- FAIL: TestParse (0.01s)', true)
    session.runs('ls', 'a.go')
    expect(section(session, 'errors')).toContain('failing test: TestParse')
    session.runs('go test ./...', '--- PASS: TestParse (0.01s)')
    expect(section(session, 'errors')).not.toContain('failing test')
  })
})

import { describe, expect, it } from 'vitest'
import { WorkedSession } from '../../test/summarize/worked-session.ts'
import { failedCallsOf, failingCommandsOf, plainCommand } from './failing-command.ts'
import { toolRunsOf } from './tool-run.ts'

const same = (text: string): string => text

describe('a command as it is told from others', () => {
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
    expect(plainCommand(command)).toBe(plain)
  })
})

describe('commands that failed', () => {
  it('have their last error, how often they failed, and what was changed since', () => {
    const work = new WorkedSession()
    work.runs('npm test', 'first error', true)
    work.edits('/src/a.ts', 'x')
    work.runs('cd /src && npm test | tail -5', 'second error', true)
    work.edits('/src/b.ts', 'y')
    work.edits('/src/c.ts', 'z', true)
    const [command] = failingCommandsOf(toolRunsOf(work.history), same)
    expect(command).toMatchObject({
      command: 'npm test',
      error: 'second error',
      failures: 2,
      isSettled: false,
      editedSince: ['/src/b.ts'],
    })
  })

  it('are settled when the same command succeeds, with the changes that led there', () => {
    const work = new WorkedSession()
    work.runs('npm test', 'error', true)
    work.edits('/src/a.ts', 'x')
    work.runs('npm run lint', 'fine')
    work.runs('npm test', 'fine')
    work.edits('/src/late.ts', 'x')
    expect(failingCommandsOf(toolRunsOf(work.history), same)).toMatchObject([
      { command: 'npm test', isSettled: true, editedSince: ['/src/a.ts'] },
    ])
  })

  it('fail again after they were settled', () => {
    const work = new WorkedSession()
    work.runs('make', 'one', true)
    work.runs('make', 'fine')
    work.runs('make', 'two', true)
    expect(failingCommandsOf(toolRunsOf(work.history), same)).toMatchObject([
      { error: 'two', isSettled: false },
    ])
  })

  it('keep the end of a long error, white space at its end included', () => {
    const work = new WorkedSession()
    const output = `${'x'.repeat(700)}${'y'.repeat(600)}\n\n`
    work.runs('make', output, true)
    expect(failingCommandsOf(toolRunsOf(work.history), same)[0]?.error).toBe(`${'y'.repeat(600)}\n\n`)
  })

  it('are known by an exit code where nothing marks them', () => {
    const work = new WorkedSession()
    work.runs('make', 'Wall time: 1\nProcess exited with code 2\nOutput:\nno rule')
    work.runs('ls', 'Process exited with code 0\nOutput:')
    work.runs('grep -r nothing', 'Process exited with code 1\nOutput:\n')
    expect(failingCommandsOf(toolRunsOf(work.history), same).map(({ command }) => command)).toEqual(['make'])
  })
})

describe('other calls that failed', () => {
  it('stand until the same tool works on the same file', () => {
    const work = new WorkedSession()
    work.edits('/src/a.ts', 'x', true)
    work.edits('/src/b.ts', 'x', true)
    work.edits('/src/a.ts', 'x')
    expect(failedCallsOf(toolRunsOf(work.history), same)).toMatchObject([
      { tool: 'Edit', target: '/src/b.ts' },
    ])
  })
})

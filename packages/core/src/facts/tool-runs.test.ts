import { describe, expect, it } from 'vitest'
import { CodingSession } from '../../test/summarize/coding-session.ts'
import type { Block } from '../log/block.ts'
import { extractSessionFacts } from './session-facts.ts'
import { listToolRuns } from './tool-runs.ts'

interface Given {
  readonly name?: string
  readonly input?: { readonly [field: string]: string | boolean }
  readonly isError?: boolean
  /** What the program logged beside the result. */
  readonly logged?: object
}

/** Returns how a call with this result ended. */
function judge(result: string, given: Given = {}): string | undefined {
  const { name = 'Bash', input = { command: 'make' }, isError, logged } = given
  const session = new CodingSession()
  session.builder.assistant('m', [{ type: 'tool_use', id: 'c', name, input }])
  const block = { type: 'tool_result', tool_use_id: 'c', content: result }
  const marked = isError === undefined ? block : { ...block, is_error: isError }
  session.builder.user([marked], logged === undefined ? {} : { toolUseResult: logged })
  return listToolRuns(session.history).at(-1)?.status
}

const head = (line: string): string => `Chunk ID: 1\nWall time: 1 s\n${line}\nOutput:\n`

describe('how a command ended', () => {
  it.each<[string, string, Given, string]>([
    ['marked as an error', 'no', { isError: true }, 'failed'],
    ['marked as no error, a log of failures', '##[error]exit code 1', { isError: false }, 'ok'],
    ['marked as no error, a log of a time limit', 'Command timed out after 2m', { isError: false }, 'ok'],
    ['unmarked, with a code above its output', `${head('Process exited with code 2')}no`, {}, 'failed'],
    ['unmarked, code 0 above a log', `${head('Process exited with code 0')}exit code 1`, {}, 'ok'],
    ['unmarked, with a code at its end', 'no rule\nexit code 2', {}, 'failed'],
    ['unmarked, a search without matches', head('Process exited with code 1'), {}, 'empty'],
    ['unmarked, in JSON, without output', '{"output":"","metadata":{"exit_code":1}}', {}, 'empty'],
    ['still running', head('Process running with session ID 4'), {}, 'running'],
    ['stopped at a time limit', 'Command timed out after 2m', { isError: true }, 'stopped'],
    ['interrupted by the user', 'half', { isError: false, logged: { interrupted: true } }, 'interrupted'],
    ['moved to the background', 'ID 7', { isError: false, logged: { backgroundTaskId: '7' } }, 'background'],
    ['refused', "The user doesn't want to proceed with this tool use.", { isError: true }, 'refused'],
  ])('is known where the result is %s', (_, result, given, status) => {
    expect(judge(result, given)).toBe(status)
  })

  it('says nothing about other calls: a file that quotes an exit code was read', () => {
    expect(judge('exit code 1', { name: 'Read', input: { file_path: '/a' } })).toBe('ok')
    const edit = { file_path: '/a', old_string: 'a', new_string: 'b' }
    expect(judge('3: exit code 1', { name: 'Edit', input: edit })).toBe('ok')
  })
})

describe('summaries and notes', () => {
  it('know the end of a command of Codex that was still running', () => {
    const session = new CodingSession()
    session.calls('exec_command', { cmd: 'make' }, `${head('Process running with session ID 4')}one\n`)
    session.calls('write_stdin', { session_id: 4, chars: '' }, `${head('Process exited with code 2')}two`)
    const [run, look] = listToolRuns(session.history)
    expect([run?.status, run?.result.endsWith('Output:\none\ntwo'), look?.status]).toEqual([
      'failed',
      true,
      'ok',
    ])
  })

  it('do not take the start of a command in the background for its success', () => {
    const session = new CodingSession()
    session.runs('make', 'no rule', true)
    session.calls('Bash', { command: 'make', run_in_background: true }, 'started')
    expect(extractSessionFacts(session.history).failures).toMatchObject([
      { command: 'make', isSettled: false },
    ])
  })
})

it('calls count each, with their own results, where a provider gives one id to all of them', () => {
  const session = new CodingSession()
  const write = (path: string): Block => ({
    type: 'tool_use',
    id: 'call_0',
    name: 'Write',
    input: { file_path: path, content: 'x' },
  })
  const done = (content: string): Block => ({ type: 'tool_result', tool_use_id: 'call_0', content })
  session.builder.assistant('m1', [write('a.ts')])
  session.builder.user([done('wrote a')])
  session.builder.assistant('m2', [write('b.ts')])
  session.builder.assistant('m2', [write('c.ts')])
  session.builder.user([done('wrote b')])
  session.builder.user([done('wrote c')])
  session.builder.assistant('m3', [write('d.ts'), write('e.ts')])
  session.builder.user([done('wrote d'), done('wrote e')])
  const runs = listToolRuns(session.history).filter(({ id }) => id === 'call_0')
  expect(runs.map(({ path, result }) => [path, result])).toEqual(
    ['a', 'b', 'c', 'd', 'e'].map((name) => [`${name}.ts`, `wrote ${name}`]),
  )
  const { files, openCalls } = extractSessionFacts(session.history)
  expect(files.map(({ path }) => path)).toEqual(expect.arrayContaining(['a.ts', 'c.ts', 'e.ts']))
  expect(openCalls).toEqual([])
})

import { symlinkSync } from 'node:fs'
import { join, relative } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { type LogFolder, logFolder, text, userLine } from '../../test/log-folder.ts'
import { findLogs } from './find-logs.ts'

const LINE = text(userLine('a'))

async function found(folder: LogFolder, ...names: readonly string[]): Promise<readonly unknown[]> {
  const { logs, problems } = await findLogs(names.map((name) => join(folder.path, name)))
  const shown = logs.map(({ path, agentPaths }) =>
    [path, ...agentPaths].map((full) => relative(folder.path, full)),
  )
  return [...shown, ...problems.map(({ message }) => message.replaceAll(folder.path, ''))]
}

describe('logs in a folder', () => {
  it('are found at any depth by their names, newest first', async () => {
    const folder = logFolder()
    folder.file('old.jsonl', LINE, 300)
    folder.file('a/b/new.JSONL', LINE, 100)
    folder.file('a/packed.jsonl.gz', gzipSync(LINE), 200)
    folder.file('a/rollout.jsonl.zst', 'x', 400)
    folder.file('a/notes.md', 'x')
    folder.file('a/settings.json', '{}')
    expect(await found(folder, '')).toEqual([
      ['a/b/new.JSONL'],
      ['a/packed.jsonl.gz'],
      ['old.jsonl'],
      ['a/rollout.jsonl.zst'],
    ])
  })

  it('of subagents stand under their session, which is as new as the newest of them', async () => {
    const folder = logFolder()
    folder.file('p/one.jsonl', LINE, 500)
    folder.file('p/one/subagents/agent-x.jsonl', LINE, 100)
    folder.file('p/one/subagents/deep/agent-y.jsonl.gz', gzipSync(LINE), 600)
    folder.file('p/two.jsonl', LINE, 200)
    folder.file('p/gone/subagents/agent-z.jsonl', LINE, 900)
    expect(await found(folder, '')).toEqual([
      ['p/one.jsonl', 'p/one/subagents/agent-x.jsonl', 'p/one/subagents/deep/agent-y.jsonl.gz'],
      ['p/two.jsonl'],
      ['p/gone/subagents/agent-z.jsonl'],
    ])
  })

  it('of subagents beside the sessions are told by what they say', async () => {
    const folder = logFolder()
    folder.file('p/one.jsonl', LINE, 10)
    folder.file('p/two.jsonl', LINE, 20)
    folder.file('p/agent-x.jsonl', text('broken', userLine('x', { sessionId: 'two', isSidechain: true })), 30)
    folder.file('p/agent-y.jsonl', text(userLine('y', { sessionId: 'elsewhere' })), 40)
    folder.file('p/agent-z.jsonl', '', 50)
    expect(await found(folder, '')).toEqual([
      ['p/one.jsonl'],
      ['p/two.jsonl', 'p/agent-x.jsonl'],
      ['p/agent-y.jsonl'],
      ['p/agent-z.jsonl'],
    ])
  })

  it('are found once, whatever leads to them', async () => {
    const folder = logFolder()
    const one = folder.file('d/one.jsonl', LINE)
    symlinkSync(folder.path, join(folder.path, 'd', 'loop'))
    symlinkSync('nowhere', join(folder.path, 'd', 'broken'))
    symlinkSync(one, join(folder.path, 'd', 'again.jsonl'))
    const answers = await found(folder, '', 'd', 'd/one.jsonl')
    expect(answers).toEqual([['d/one.jsonl']])
  })
})

describe('files by name', () => {
  it('are taken whatever they are called, a session with its agents', async () => {
    const folder = logFolder()
    folder.file('s/one.jsonl', LINE)
    folder.file('s/one/subagents/agent-x.jsonl', LINE)
    folder.file('s/agent-y.jsonl', text(userLine('y', { sessionId: 'one' })))
    folder.file('s/agent-z.jsonl', text(userLine('z', { sessionId: 'two' })))
    folder.file('s/copy.txt', LINE, 5)
    expect(await found(folder, 's/one.jsonl', 's/copy.txt')).toEqual([
      ['s/one.jsonl', 's/agent-y.jsonl', 's/one/subagents/agent-x.jsonl'],
      ['s/copy.txt'],
    ])
  })

  it('an agent by name is a log of its own', async () => {
    const folder = logFolder()
    folder.file('one.jsonl', LINE)
    folder.file('one/subagents/agent-x.jsonl', LINE)
    expect(await found(folder, 'one/subagents/agent-x.jsonl')).toEqual([['one/subagents/agent-x.jsonl']])
  })

  it('that are not there are told in one line', async () => {
    expect(await found(logFolder(), 'none.jsonl')).toEqual(['/none.jsonl does not exist.'])
  })
})

it('a search can be stopped', async () => {
  const folder = logFolder()
  folder.file('d/one.jsonl', LINE)
  const search = findLogs([folder.path], { signal: AbortSignal.abort() })
  await expect(search).rejects.toThrow(expect.objectContaining({ name: 'AbortError' }))
})

import { symlinkSync } from 'node:fs'
import { join, relative } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { type LogFolder, logFolder, text, userLine } from '../../test/log-folder.ts'
import { findDefaultLogs, findLogs, type LogEnvironment, listDefaultLogFolders } from './find-logs.ts'

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

  it('of subagents are listed with their session, which is as new as the newest of them', async () => {
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

  it('of a session of the agent are found without the other files that it keeps', async () => {
    const folder = logFolder()
    for (const session of ['s/one', 's/one/subagents/sessions/agent-x']) {
      folder.file(`${session}.jsonl`, LINE)
      folder.file(`${session}/agent.json`, '{}')
      folder.file(`${session}/seen-files.jsonl`, '{"path":"a","version":"b"}')
      folder.file(`${session}/scratch/data.jsonl`, '{}')
    }
    folder.file('s/other/seen-files.jsonl', LINE)
    const own = ['s/one.jsonl', 's/one/subagents/sessions/agent-x.jsonl']
    expect(await found(folder, '')).toEqual([own, ['s/other/seen-files.jsonl']])
    expect(await found(folder, 's/one')).toEqual([[own[1]]])
  })

  it('of subagents beside the sessions are assigned by their content', async () => {
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

  it('are found once, even through several links', async () => {
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
  it('are read whatever their names, a session with its agents', async () => {
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

  it('a subagent named by the caller is a log of its own', async () => {
    const folder = logFolder()
    folder.file('one.jsonl', LINE)
    folder.file('one/subagents/agent-x.jsonl', LINE)
    expect(await found(folder, 'one/subagents/agent-x.jsonl')).toEqual([['one/subagents/agent-x.jsonl']])
  })

  it('that do not exist are reported in one line', async () => {
    expect(await found(logFolder(), 'none.jsonl')).toEqual(['/none.jsonl does not exist.'])
  })
})

it('a search can be aborted', async () => {
  const folder = logFolder()
  folder.file('d/one.jsonl', LINE)
  const search = findLogs([folder.path], { signal: AbortSignal.abort() })
  await expect(search).rejects.toThrow(expect.objectContaining({ name: 'AbortError' }))
})

describe('where sessions are stored', () => {
  it.each<[LogEnvironment, readonly string[]]>([
    [
      {},
      [
        'claude-code /u/.claude/projects',
        'claude-code /u/.config/claude/projects',
        'codex /u/.codex/sessions',
        'codex /u/.codex/archived_sessions',
        'tidemark /u/.local/share/tidemark/sessions',
      ],
    ],
    [
      { CLAUDE_CONFIG_DIR: '/c', CODEX_HOME: '/x', TIDEMARK_HOME: '/t' },
      ['claude-code /c/projects', 'codex /x/sessions', 'codex /x/archived_sessions', 'tidemark /t/sessions'],
    ],
    [
      { CLAUDE_CONFIG_DIR: '', CODEX_HOME: '', XDG_CONFIG_HOME: '/cfg', XDG_DATA_HOME: '/data' },
      [
        'claude-code /u/.claude/projects',
        'claude-code /cfg/claude/projects',
        'codex /u/.codex/sessions',
        'codex /u/.codex/archived_sessions',
        'tidemark /data/tidemark/sessions',
      ],
    ],
  ])('%j', (variables, expected) => {
    expect(listDefaultLogFolders(variables, '/u').map(({ format, folder }) => `${format} ${folder}`)).toEqual(
      expected,
    )
  })

  it('all places are searched, newest first; missing ones have no sessions', async () => {
    const folder = logFolder()
    const line = text(userLine('a'))
    const paths = [
      folder.file('.claude/projects/-work-boat/one.jsonl', line, 30),
      folder.file('.codex/sessions/2026/01/02/rollout-2026-01-02T03-04-05-x.jsonl', line, 10),
      folder.file('.codex/archived_sessions/rollout-2025-01-02T03-04-05-y.jsonl', line, 40),
      folder.file('.local/share/tidemark/sessions/fix-login.jsonl', line, 20),
    ]
    folder.file('.claude/history.jsonl', line)
    const { logs, problems } = await findDefaultLogs({}, listDefaultLogFolders({}, folder.path))
    expect(problems).toEqual([])
    expect(logs.map(({ path }) => path)).toEqual([paths[1], paths[3], paths[0], paths[2]])
    const none = await findDefaultLogs({}, listDefaultLogFolders({}, join(folder.path, 'nobody')))
    expect(none).toEqual({ logs: [], problems: [] })
  })

  it('a place that cannot be read is reported, and the others are searched', async () => {
    const folder = logFolder()
    const path = folder.file('.codex/sessions/rollout-2026-01-02T03-04-05-x.jsonl', text(userLine('a')))
    // A cycle of links cannot be resolved, not even with all permissions.
    symlinkSync(join(folder.path, '.claude'), join(folder.path, '.claude'))
    const { logs, problems } = await findDefaultLogs({}, listDefaultLogFolders({}, folder.path))
    expect(logs.map((log) => log.path)).toEqual([path])
    const projects = join(folder.path, '.claude', 'projects')
    expect(problems).toEqual([
      { path: projects, message: expect.stringContaining(`${projects} cannot be read: ELOOP`) },
    ])
  })
})

import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { logFolder, text, userLine } from '../../test/log-folder.ts'
import { defaultPlaces, findDefaultLogs, type PlaceVariables } from './default-places.ts'

describe('where sessions are kept', () => {
  it.each<[PlaceVariables, readonly string[]]>([
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
    expect(defaultPlaces(variables, '/u').map(({ format, folder }) => `${format} ${folder}`)).toEqual(
      expected,
    )
  })

  it('all of them are searched, newest first, and those that are not there have nothing', async () => {
    const folder = logFolder()
    const line = text(userLine('a'))
    const paths = [
      folder.file('.claude/projects/-work-boat/one.jsonl', line, 30),
      folder.file('.codex/sessions/2026/01/02/rollout-2026-01-02T03-04-05-x.jsonl', line, 10),
      folder.file('.codex/archived_sessions/rollout-2025-01-02T03-04-05-y.jsonl', line, 40),
      folder.file('.local/share/tidemark/sessions/fix-login.jsonl', line, 20),
    ]
    folder.file('.claude/history.jsonl', line)
    const { logs, problems } = await findDefaultLogs({}, defaultPlaces({}, folder.path))
    expect(problems).toEqual([])
    expect(logs.map(({ path }) => path)).toEqual([paths[1], paths[3], paths[0], paths[2]])
    const none = await findDefaultLogs({}, defaultPlaces({}, join(folder.path, 'nobody')))
    expect(none).toEqual({ logs: [], problems: [] })
  })

  it('one that is there and cannot be looked at is told, and the others are searched', async () => {
    const folder = logFolder()
    const path = folder.file('.codex/sessions/rollout-2026-01-02T03-04-05-x.jsonl', text(userLine('a')))
    // In a circle of links nobody finds anything, not even who may read everything.
    symlinkSync(join(folder.path, '.claude'), join(folder.path, '.claude'))
    const { logs, problems } = await findDefaultLogs({}, defaultPlaces({}, folder.path))
    expect(logs.map((log) => log.path)).toEqual([path])
    const projects = join(folder.path, '.claude', 'projects')
    expect(problems).toEqual([
      { path: projects, message: expect.stringContaining(`${projects} cannot be read: ELOOP`) },
    ])
  })
})

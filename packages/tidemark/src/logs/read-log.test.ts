import { buildSessionLog } from '@tidemark/core/log/session-log'
import { describe, expect, it } from 'vitest'
import { callLine, logFolder, resultLine, text, userLine } from '../../test/log-folder.ts'
import { findLogs } from './find-logs.ts'
import { type AgentLog, type LogContents, readLog } from './read-log.ts'

async function read(...given: Parameters<typeof readLog>): Promise<LogContents> {
  const log = await readLog(...given)
  if (!log.ok) throw new Error(log.message)
  return log
}

function uuids(records: LogContents['records']): readonly unknown[] {
  return records.map(({ record }) => record.uuid)
}

function shown(agents: readonly AgentLog[]): readonly unknown[] {
  return agents.map(({ agent, records }) => [agent, ...uuids(records)])
}

const side = (uuid: string, more: object = {}): string => userLine(uuid, { isSidechain: true, ...more })

describe('a session', () => {
  it('is read with its format, records, damage and metadata', async () => {
    const path = logFolder().file(
      'one.jsonl',
      text(
        userLine('a', { cwd: '/projects/boat', version: '2' }),
        'broken',
        callLine('b', 'a', 'c1'),
        resultLine('c', 'b', 'c1'),
      ),
    )
    const { records, damage, meta, ...rest } = await read(path)
    expect(rest).toMatchObject({ ok: true, path, format: 'claude-code', lines: 4, agents: [] })
    expect(records.map(({ line, record }) => [line, record.uuid])).toEqual([
      [1, 'a'],
      [3, 'b'],
      [4, 'c'],
    ])
    expect(damage.map(({ kind, line }) => [kind, line])).toEqual([['bad-json', 2]])
    expect(meta).toMatchObject({ sessionId: 's', cwd: '/projects/boat', project: 'boat', version: '2.0.0' })
  })

  it('has the side chains of its file by agent, or by their first record', async () => {
    const lines = [
      userLine('a'),
      side('x1', { agentId: 'x' }),
      side('p1'),
      side('q1'),
      side('p2', { parentUuid: 'p1' }),
      side('x2', { agentId: 'x', parentUuid: 'x1' }),
      side('q2', { parentUuid: 'q1' }),
      side('p3', { parentUuid: 'p2' }),
      userLine('b', { parentUuid: 'a' }),
    ]
    const log = await read(logFolder().file('one.jsonl', text(...lines)))
    expect(uuids(log.records)).toEqual(['a', 'b'])
    expect(shown(log.agents)).toEqual([
      ['x', 'x1', 'x2'],
      ['p1', 'p1', 'p2', 'p3'],
      ['q1', 'q1', 'q2'],
    ])
  })

  it('has the files of its agents, each a conversation of its own', async () => {
    const folder = logFolder()
    const path = folder.file('one.jsonl', text(userLine('a')))
    folder.file(
      'one/subagents/agent-x.jsonl',
      text(side('x1', { agentId: 'x' }), side('x2', { agentId: 'x', parentUuid: 'x1' })),
    )
    folder.file('one/subagents/agent-y.jsonl', text('broken', side('y1', { agentId: 'y' })))
    folder.file('one/subagents/agent-z.jsonl', 'nothing of a log')
    const log = await read(path)
    expect(shown(log.agents)).toEqual([
      ['x', 'x1', 'x2'],
      ['y', 'y1'],
    ])
    expect(log.agents.map(({ damage }) => damage.length)).toEqual([0, 1])
    expect(
      log.damage.map(({ line, why }) => [line, why.includes('agent-z.jsonl has no JSON lines')]),
    ).toEqual([[0, true]])
    const folded = buildSessionLog((log.agents[0]?.records ?? []).map(({ record }) => record))
    expect([folded.branch.length, [...folded.damage]]).toEqual([2, []])
    expect((await read(path, { withAgents: false })).agents).toEqual([])
  })

  it('found in a folder is read with the agents found with it', async () => {
    const folder = logFolder()
    folder.file('one.jsonl', text(userLine('a')))
    folder.file('one/subagents/agent-x.jsonl', text(side('x1', { agentId: 'x' })))
    const { logs } = await findLogs([folder.path])
    const read = await Promise.all(logs.map((log) => readLog(log)))
    expect(read.map((log) => log.ok && shown(log.agents))).toEqual([[['x', 'x1']]])
  })

  it('with only one agent is that agent’s conversation', async () => {
    const path = logFolder().file(
      'agent-x.jsonl',
      text(side('x1', { agentId: 'x' }), side('x2', { agentId: 'x', parentUuid: 'x1' })),
    )
    const log = await read(path)
    expect([uuids(log.records), log.agents, log.meta.agent]).toEqual([['x1', 'x2'], [], 'x'])
  })

  it('of a later Tidemark version is refused in one line', async () => {
    const header = {
      type: 'tidemark',
      format: 'tidemark-session',
      version: 99,
      sessionId: 's',
      timestamp: 't',
    }
    const path = logFolder().file('one.jsonl', text(JSON.stringify(header)))
    expect(await readLog(path)).toEqual({
      ok: false,
      path,
      reason: 'newer-format',
      message: `${path} cannot be read: This session was written in format version 99, and this tidemark reads up to version 1: update tidemark to open it.`,
    })
  })
})

describe('odd links', () => {
  it.each([
    [
      'uuids used twice',
      [userLine('a'), userLine('a'), userLine('b', { parentUuid: 'a' })],
      ['duplicate-uuid'],
    ],
    [
      'a record that is its own parent',
      [userLine('a', { parentUuid: 'a' }), userLine('b', { parentUuid: 'a' })],
      ['cyclic-parent'],
    ],
    [
      'a circle',
      [userLine('a', { parentUuid: 'b' }), userLine('b', { parentUuid: 'a' })],
      ['missing-parent', 'cyclic-parent'],
    ],
  ])('%s: all records are read, and the damage is reported', async (_, lines, kinds) => {
    const log = await read(logFolder().file('one.jsonl', text(...lines)))
    expect(log.records).toHaveLength(lines.length)
    const folded = buildSessionLog(log.records.map(({ record }) => record))
    expect([...folded.damage].map(({ kind }) => kind)).toEqual(kinds)
  })
})

/** What must hold for the sessions in the database, whatever has happened to the processes that wrote them. */
import type Anthropic from '@anthropic-ai/sdk'
import type pg from 'pg'
import { expect } from 'vitest'

interface StoredMessage {
  readonly content?: unknown
}

/** Every record of a session once, with positions without gaps, and each tool result once. */
export async function expectWholeLogs(pool: pg.Pool, sessions: number): Promise<void> {
  const bySession = await readSessions(pool)
  expect(bySession.size).toBe(sessions)
  for (const lines of bySession.values()) {
    expect(lines.map(({ line }) => line)).toEqual(lines.map((_, index) => index + 1))
    const uuids = lines.flatMap(({ record: { uuid } }) => (uuid === undefined ? [] : [uuid]))
    expect(new Set(uuids).size).toBe(uuids.length)
    const results = listIds(lines, 'user', 'tool_result', 'tool_use_id')
    expect(new Set(results).size).toBe(results.length)
  }
}

/** Tool calls that a client has read, and results that it has sent, which the log of its session does not have. */
export async function listLostBlocks(
  pool: pg.Pool,
  session: string,
  messages: readonly Anthropic.MessageParam[],
): Promise<readonly string[]> {
  const all = await readSessions(pool)
  const [, lines = []] = [...all].find(([name]) => name.endsWith(` ${session}`)) ?? []
  const kept = new Set([
    ...listIds(lines, 'assistant', 'tool_use', 'id'),
    ...listIds(lines, 'user', 'tool_result', 'tool_use_id').map((id) => `result of ${id}`),
  ])
  const blocks = messages.flatMap(({ content }) => (typeof content === 'string' ? [] : content))
  const known = blocks.flatMap((block) => {
    if (block.type === 'tool_use') return [block.id]
    return block.type === 'tool_result' ? [`result of ${block.tool_use_id}`] : []
  })
  return known.filter((id) => !kept.has(id))
}

interface StoredLine {
  readonly line: number
  readonly record: {
    readonly type?: string
    readonly uuid?: string
    readonly message?: StoredMessage
  }
}

/** The lines of each session, by scope and id. */
async function readSessions(pool: pg.Pool): Promise<ReadonlyMap<string, readonly StoredLine[]>> {
  const { rows } = await pool.query(
    'select scope, session, line, text from tidemark_lines order by scope, session, line',
  )
  const lines = rows.map(({ scope, session, line, text }) => ({
    name: `${scope} ${session}`,
    line: Number(line),
    record: JSON.parse(text) as StoredLine['record'],
  }))
  return Map.groupBy(lines, ({ name }) => name)
}

function listIds(lines: readonly StoredLine[], role: string, type: string, field: string): readonly string[] {
  return lines
    .filter(({ record }) => record.type === role)
    .flatMap(({ record: { message } }) => (Array.isArray(message?.content) ? message.content : []))
    .filter((block) => block.type === type)
    .map((block) => String(block[field]))
}

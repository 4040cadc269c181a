/** The journal and the blobs in Postgres, on a real server. */
import { createCoder, createSimulator, withSummaries } from '@tidemark/simulator'
import pg from 'pg'
import { anthropic, createTidemark } from 'tidemark'
import {
  createPostgresBlobs,
  createPostgresJournal,
  createPostgresLocks,
  createPostgresTables,
  type PostgresJournal,
} from 'tidemark/postgres'
import { blobStoreCases, journalCases } from 'tidemark/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { explainMissingPostgres, type PostgresServer, startPostgres } from '../support/postgres-server.ts'

const missing = explainMissingPostgres()

describe.skipIf(missing !== null)('in Postgres', () => {
  let server: PostgresServer
  let pool: pg.Pool
  let scopes = 0
  beforeAll(async () => {
    server = await startPostgres()
    pool = createPool()
    await createPostgresTables(pool)
  })
  afterAll(async () => {
    await pool?.end()
    await server?.stop()
  })
  function createPool(): pg.Pool {
    // A server that is stopped ends its connections, which the pool reports as errors.
    return new pg.Pool({ connectionString: server.url, max: 50 }).on('error', () => {})
  }

  const record = (uuid: string, session: string) =>
    ({
      type: 'custom',
      uuid,
      parentUuid: null,
      sessionId: session,
      timestamp: '2026-01-01T00:00:00Z',
    }) as never

  describe('journal', () => {
    const cases = journalCases(() => {
      scopes += 1
      const scope = `cases-${scopes}`
      const open: PostgresJournal[] = []
      return {
        locks: true,
        async open() {
          const journal = createPostgresJournal(pool, { scope })
          open.push(journal)
          return journal
        },
        end: async () => void (await Promise.all(open.map((journal) => journal.close()))),
      }
    })
    for (const { name, run } of cases) it(name, () => run())
  })

  describe('blobs', () => {
    for (const { name, run } of blobStoreCases(() => ({
      open: async () => createPostgresBlobs(pool),
      end: async () => {},
    })))
      it(name, () => run())
  })

  it('sessions with equal ids of two scopes do not meet', async () => {
    const [one, other] = [
      createPostgresJournal(pool, { scope: 'one' }),
      createPostgresJournal(pool, { scope: 'other' }),
    ]
    const record = {
      type: 'custom',
      uuid: 'a',
      parentUuid: null,
      sessionId: 's',
      timestamp: '2026-01-01T00:00:00Z',
    } as never
    expect((await one.append('s', 0, [record])).ok).toBe(true)
    expect(await other.read('s', () => {})).toEqual({ exists: false, position: 0, damage: [] })
    expect((await other.append('s', 0, [record])).ok).toBe(true)
    await Promise.all([one.close(), other.close()])
  })

  it('a writer that lost its connection and its lock is refused by the position, and its records are not mixed in', async () => {
    const ownPool = createPool()
    const first = createPostgresJournal(ownPool, { scope: 'cut', program: 'first' })
    const second = createPostgresJournal(pool, { scope: 'cut', program: 'second' })
    const record = (uuid: string) =>
      ({ type: 'custom', uuid, parentUuid: null, sessionId: 's', timestamp: '2026-01-01T00:00:00Z' }) as never
    expect((await first.append('s', 0, [record('a')])).ok).toBe(true)
    const refused = await second.append('s', 1, [record('x')])
    expect(refused).toMatchObject({ ok: false, reason: 'locked', owner: expect.stringContaining('first') })
    await pool.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'first'",
    )
    await expect.poll(async () => (await second.append('s', 1, [record('b')])).ok).toBe(true)
    await second.release('s')
    const late = await first.append('s', 1, [record('late')])
    expect(late).toEqual({ ok: false, reason: 'conflict', position: 2 })
    await Promise.all([first.close(), second.close()])
    await ownPool.end()
  })

  it('sessions that append at the same time send one query after the other on the connection of their locks', async () => {
    const running = new Map<object, number>()
    let most = 0
    const counted = {
      query: (text: string, values?: unknown[]) => pool.query(text, values),
      async connect() {
        const client = await pool.connect()
        const query = client.query.bind(client) as (
          text: string,
          values?: unknown[],
        ) => Promise<pg.QueryResult>
        const count = (change: number): number => {
          const now = (running.get(client) ?? 0) + change
          running.set(client, now)
          return now
        }
        return Object.assign(client, {
          async query(text: string, values?: unknown[]) {
            most = Math.max(most, count(1))
            return query(text, values).finally(() => count(-1))
          },
        })
      },
    }
    const journal = createPostgresJournal(counted, { scope: 'in-turn' })
    const sessions = Array.from({ length: 8 }, (_, number) => `session-${number}`)
    for (const [after, uuid] of ['a', 'b'].entries())
      await Promise.all(sessions.map((session) => journal.append(session, after, [record(uuid, session)])))
    await journal.close()
    expect(most).toBe(1)
  })

  it('locks are spread among their connections, and one that is lost loses only its own', async () => {
    const ownPool = createPool()
    let lost = 0
    ownPool.on('remove', () => {
      lost += 1
    })
    const locks = createPostgresLocks(ownPool, { program: 'spread', connections: 3 })
    const journal = createPostgresJournal(ownPool, { scope: 'spread', locks })
    const other = createPostgresJournal(pool, { scope: 'spread', program: 'other' })
    const sessions = Array.from({ length: 24 }, (_, number) => `session-${number}`)
    await Promise.all(sessions.map((session) => journal.append(session, 0, [record('a', session)])))
    const readHolders = async () =>
      (
        await pool.query(
          `select pid from pg_locks join pg_stat_activity using (pid)
           where locktype = 'advisory' and application_name = 'spread' group by pid`,
        )
      ).rows.map(({ pid }) => Number(pid))
    const holders = await readHolders()
    expect(holders).toHaveLength(3)
    await pool.query('select pg_terminate_backend($1)', [holders[0]])
    await expect.poll(readHolders).toHaveLength(2)
    await expect.poll(() => lost).toBeGreaterThan(0)
    const taken = await Promise.all(
      sessions.map((session) => other.append(session, 1, [record('b', session)])),
    )
    const won = taken.filter(({ ok }) => ok).length
    expect([won > 0, won < sessions.length]).toEqual([true, true])
    // What the other one wrote is noticed by the number of lines, and everybody else goes on.
    const late = await Promise.all(
      sessions.map((session) => journal.append(session, 1, [record('c', session)])),
    )
    expect(late.map(({ ok }) => ok)).toEqual(taken.map(({ ok }) => !ok))
    await Promise.all([other.close(), locks.close()])
    await ownPool.end()
  })

  it('a session of the library lives in it: another process opens it and goes on', async () => {
    const coder = createCoder()
    const { fetch } = createSimulator({ script: withSummaries(coder.script) })
    const open = () =>
      createTidemark({
        model: anthropic('claude-sonnet-5-5', { apiKey: 'any', fetch }),
        journal: createPostgresJournal(pool, { scope: 'library' }),
        blobs: createPostgresBlobs(pool),
      })
    const [first, second] = [open(), open()]
    const before = await first.open('fix-login')
    const runTool = (call: Parameters<typeof coder.toolResult>[0]) => String(coder.toolResult(call).content)
    await before.run('Fix the login page.', { tools: coder.tools, runTool }).outcome
    await first.close()
    const after = await second.open('fix-login')
    expect(after.money().spent).toEqual(before.money().spent)
    expect((await after.compact()).ok).toBe(true)
    expect((await after.undo()).ok).toBe(true)
    await second.close()
  })
})

/**
 * The sessions that a viewer may see, read from Postgres. The list shows stored summaries of logs, which all processes share and
 * which are made again when a log has grown. A session that is opened is read in its present state. Logs are never written.
 */
import { createHash } from 'node:crypto'
import { describeThrown } from '@tidemark/core/errors'
import type { PageAnswer, PageSessions, SessionApiRequest } from '@tidemark/page/server/page-routes'
import type { ListedSession, SessionList, SessionOwner } from 'tidemark/internal'
import type { Database } from '../database/database.ts'
import { createLineConverter } from '../database/large-lines.ts'
import type { ObjectStore } from '../database/object-store.ts'
import {
  createLogReaderThread,
  type LogQuestion,
  type LogReaderThread,
  UnreadableLogError,
} from './log-reader.ts'
import { listVisibilityParameters, type PageViewer, VISIBLE_KEYS_SQL } from './viewers.ts'

/** Version of the stored report format. After an increase, stored reports of older formats are made again. */
export const REPORT_FORMAT_VERSION = 1
/** Maximum sessions in the list, newest first. */
const MOST_LISTED = 200
/** Maximum logs that one refresh reads. Showing the list starts a refresh, and so does each check for changes. */
const BATCH = 25
/** Seconds after which a growing log is read again. */
const STALE_SECONDS = 30
const LIVE_MS = 120_000
/** Larger logs are not read for the page. */
const MOST_LOG_BYTES = 200_000_000

export interface ViewerSessions {
  /** Returns the sessions of a viewer, for questions of the page. */
  open(viewer: PageViewer): PageSessions
  /** Starts to read logs that have grown. Returns lines and report time of each session, which show later changes. */
  refreshRevisions(viewer: PageViewer): Promise<ReadonlyMap<string, SessionRevision>>
  close(): Promise<void>
}

export interface SessionRevision {
  readonly lines: number
  readonly reportAt: number
}

/** Where logs are: rows of the database, and large lines in a store of objects, if there is one. */
interface LogStore {
  readonly pool: Database
  readonly objects: ObjectStore | null
}

/** Creates the service. `onError`: called if a refresh fails, which no viewer waits for. */
export function createViewerSessions(store: LogStore, onError: (message: string) => void): ViewerSessions {
  const { pool } = store
  const reader = createLogReaderThread()
  const waiting = new Set<string>()
  let isClosed = false

  /** Reads the changed logs of a viewer's sessions, newest first. A log that is already being read is skipped. */
  async function refresh(viewer: PageViewer): Promise<void> {
    const { rows } = await pool.query<SessionRow>(STALE, [
      ...listVisibilityParameters(viewer),
      REPORT_FORMAT_VERSION,
      STALE_SECONDS,
      BATCH,
    ])
    const due = rows.filter((row) => !waiting.has(toSessionId(row)))
    for (const row of due) waiting.add(toSessionId(row))
    try {
      for (const row of due) if (!isClosed) await makeReport(store, reader, row)
    } finally {
      for (const row of due) waiting.delete(toSessionId(row))
    }
  }

  function startRefresh(viewer: PageViewer): void {
    if (!isClosed) refresh(viewer).catch((thrown: unknown) => onError(describeThrown(thrown)))
  }

  return {
    open: (viewer) => ({
      list() {
        startRefresh(viewer)
        return listSessions(pool, viewer)
      },
      async answer(id, ask) {
        const { rows } = await pool.query<SessionRow>(ONE, [...listVisibilityParameters(viewer), id])
        return rows[0] === undefined ? null : answerAbout(store, reader, rows[0], ask)
      },
    }),
    async refreshRevisions(viewer) {
      startRefresh(viewer)
      const { rows } = await pool.query<ListedRow>(LISTED, [
        ...listVisibilityParameters(viewer),
        REPORT_FORMAT_VERSION,
        MOST_LISTED,
      ])
      return new Map(
        rows.map((row) => [
          toSessionId(row),
          { lines: row.lines ?? 0, reportAt: row.made_at?.getTime() ?? 0 },
        ]),
      )
    },
    async close() {
      isClosed = true
      await reader.close()
    },
  }
}

interface SessionRow {
  readonly scope: string
  readonly session: string
  readonly used_at: Date
  readonly key: string
  readonly team: string | null
  /** Number of the last line; null if there is none. */
  readonly lines: number | null
}

interface ListedRow extends SessionRow {
  readonly made_at: Date | null
  readonly listed: string | null
  readonly why: string | null
}

const COLUMNS = `s.scope, s.session, s.used_at, k.name as key, k.team,
  (select l.line from tidemark_lines l where l.scope = s.scope and l.session = s.session order by l.line desc limit 1) as lines`

/** SQL parameters: those of the viewer ($1 to $3), then the report format ($4). */
const FROM = `from gateway_sessions s join gateway_keys k on k.id = s.scope
  left join gateway_reports r on r.scope = s.scope and r.session = s.session and r.format = $4
  where ${VISIBLE_KEYS_SQL}`

const LISTED = `select ${COLUMNS}, r.made_at, r.listed, r.why ${FROM} order by s.used_at desc limit $5`

const COUNTS = `select count(*) as sessions, count(*) filter (where r.scope is null) as unread ${FROM}`

/** Selects the logs to read. The time of last use is up to ten seconds old, hence the margin after it. */
const STALE = `select * from (
    select ${COLUMNS}, r.lines as read, r.made_at ${FROM} and (r.scope is null or (
      r.made_at < now() - make_interval(secs => $5) and r.made_at < s.used_at + make_interval(secs => $5)))
  ) due where read is distinct from lines order by used_at desc limit $6`

const ONE = `select ${COLUMNS} from gateway_sessions s join gateway_keys k on k.id = s.scope
  where ${VISIBLE_KEYS_SQL} and left(encode(sha256(convert_to(s.scope || ' ' || s.session, 'UTF8')), 'hex'), 24) = $4`

/** Returns the id of a session in addresses. Knowing an id gives no access: it is only searched among the viewer's sessions. */
function toSessionId({ scope, session }: Pick<SessionRow, 'scope' | 'session'>): string {
  return createHash('sha256').update(`${scope} ${session}`).digest('hex').slice(0, 24)
}

function toOwner({ key, team, session }: SessionRow): SessionOwner {
  return { key, team, session }
}

function isLive({ used_at }: SessionRow): boolean {
  return Date.now() - used_at.getTime() < LIVE_MS
}

function toListed(row: ListedRow): readonly ListedSession[] {
  if (row.listed === null) return []
  const listed: ListedSession = JSON.parse(row.listed)
  return [{ ...listed, id: toSessionId(row), isLive: isLive(row), owner: toOwner(row) }]
}

async function listSessions(pool: Database, viewer: PageViewer): Promise<SessionList> {
  const values = [...listVisibilityParameters(viewer), REPORT_FORMAT_VERSION]
  const { rows } = await pool.query<ListedRow>(LISTED, [...values, MOST_LISTED])
  const counted = await pool.query(COUNTS, values)
  const { sessions = 0, unread = 0 } = counted.rows[0] ?? {}
  return {
    sessions: rows.flatMap(toListed),
    pending: Number(unread),
    notRead: Math.max(0, Number(sessions) - MOST_LISTED),
    unreadable: rows.flatMap(({ session, why }) => (why === null ? [] : [{ file: session, why }])),
  }
}

function toQuestion<Ask extends SessionApiRequest | null>(row: SessionRow, ask: Ask) {
  const question: LogQuestion & { readonly ask: Ask } = {
    id: toSessionId(row),
    version: row.lines ?? 0,
    modifiedMs: row.used_at.getTime(),
    isLive: isLive(row),
    owner: toOwner(row),
    ask,
  }
  return question
}

async function answerAbout(
  store: LogStore,
  reader: LogReaderThread,
  row: SessionRow,
  ask: SessionApiRequest,
): Promise<PageAnswer> {
  try {
    return await reader.ask(toQuestion(row, ask), () => readLines(store, row))
  } catch (thrown) {
    return { status: 422, json: { error: `This session cannot be read: ${describeThrown(thrown)}` } }
  }
}

async function makeReport(store: LogStore, reader: LogReaderThread, row: SessionRow): Promise<void> {
  const made = await reader
    .ask(toQuestion(row, null), () => readLines(store, row))
    .catch((thrown: unknown) => {
      if (thrown instanceof UnreadableLogError) return { listed: null, losses: '[]', why: thrown.message }
      throw thrown
    })
  const why = 'why' in made ? made.why : null
  await store.pool.query(
    `insert into gateway_reports (scope, session, format, lines, listed, why, losses)
     select scope, session, $3, $4, $5, $6, $7 from gateway_sessions where scope = $1 and session = $2
     on conflict (scope, session) do update set format = excluded.format, lines = excluded.lines,
       made_at = now(), listed = excluded.listed, why = excluded.why, losses = excluded.losses`,
    [row.scope, row.session, REPORT_FORMAT_VERSION, row.lines ?? 0, made.listed, why, made.losses],
  )
}

/** Bytes of a log that are read at once. A line that is longer comes whole. */
const PIECE_BYTES = 2_000_000

const PIECES = `select max(line) as last, sum(bytes) as bytes from (
    select line, octet_length(text) as bytes, sum(octet_length(text)) over (order by line) / $4 as piece
    from tidemark_lines where scope = $1 and session = $2 and line <= $3
  ) sized group by piece order by piece`

const OBJECTS_SIZE =
  'select coalesce(sum(bytes), 0) as bytes from gateway_objects where scope = $1 and session = $2'

async function* readLines(
  { pool, objects }: LogStore,
  { scope, session, lines }: SessionRow,
): AsyncGenerator<readonly string[]> {
  const pieces = await pool.query(PIECES, [scope, session, lines ?? 0, PIECE_BYTES])
  const outside = await pool.query(OBJECTS_SIZE, [scope, session])
  if ([...pieces.rows, ...outside.rows].reduce((sum, { bytes }) => sum + Number(bytes), 0) > MOST_LOG_BYTES)
    throw new UnreadableLogError('its log is too large for the page.')
  const { fromStored } = createLineConverter(pool, scope, objects)
  let read = 0
  for (const { last } of pieces.rows) {
    const { rows } = await pool.query<{ text: string }>(
      'select text from tidemark_lines where scope = $1 and session = $2 and line > $3 and line <= $4 order by line',
      [scope, session, read, last],
    )
    yield await fromStored(rows.map(({ text }) => text))
    read = last
  }
}

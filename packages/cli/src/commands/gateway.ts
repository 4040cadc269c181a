/** `tidemark gateway`: serves many users, and manages their keys. The gateway is a separate package, loaded here. */
import { userInfo } from 'node:os'
import {
  addKey,
  deleteSession,
  describeDatabaseError,
  type GatewayLogLine,
  type ListedKey,
  listAudit,
  listKeys,
  migrateDatabase,
  openDatabase,
  type Period,
  revokeKey,
  serveGateway,
} from '@tidemark/gateway'
import { formatCount, formatDollars } from '@tidemark/terminal/render/format-numbers'
import { formatJson } from '@tidemark/terminal/render/json-output'
import { renderTable } from '@tidemark/terminal/render/layout'
import { printError } from '@tidemark/terminal/render/print-errors'
import { createScreen } from '@tidemark/terminal/render/screen'
import { toSafeLine } from '@tidemark/terminal/render/text'
import { EXIT_CODES, type Terminal, waitForInterruption } from '@tidemark/terminal/terminal'
import { tidemarkHome } from 'tidemark/internal'

export interface GatewayCommandOptions {
  readonly database?: string
  /** Address of a bucket. */
  readonly objects?: string
  readonly port?: number
  readonly host?: string
  readonly upstream?: string
  readonly upstreamOpenai?: string
  /** Maximum megabytes of a request. */
  readonly maxBody?: number
  /** Maximum context window to use, in tokens. */
  readonly window?: number
  /** Days without a request after which a session is deleted. */
  readonly retention?: number
  /** Seconds without a request after which a session is closed. */
  readonly idle?: number
  /** Seconds that running requests may take after the command was ended. */
  readonly drain?: number
  readonly pageUrl?: string
  readonly json?: boolean
}

export interface DatabaseOptions {
  readonly database: string
  readonly json?: boolean
}

export interface AddKeyOptions extends DatabaseOptions {
  readonly budget?: number
  readonly period?: string
  readonly models?: readonly string[]
  readonly team?: string
  readonly viewer?: boolean
}

const DEFAULT_PORT = 8_788

export async function runGatewayCommand(choices: GatewayCommandOptions, terminal: Terminal): Promise<number> {
  const { database, host, upstream, upstreamOpenai, maxBody, window, retention, idle, drain } = choices
  const gateway = await serveGateway({
    home: tidemarkHome(terminal.env),
    env: terminal.env,
    port: choices.port ?? DEFAULT_PORT,
    onLog: (line) => printLogLine(line, choices, terminal),
    ...(database === undefined ? {} : { database }),
    ...(choices.objects === undefined ? {} : { objects: choices.objects }),
    ...(host === undefined ? {} : { host }),
    ...(upstream === undefined ? {} : { upstream }),
    ...(upstreamOpenai === undefined ? {} : { upstreamOpenai }),
    ...(maxBody === undefined ? {} : { maxBodyBytes: maxBody * 1_000_000 }),
    ...(window === undefined ? {} : { windowTokens: window }),
    ...(retention === undefined ? {} : { retentionDays: retention }),
    ...(idle === undefined ? {} : { idleSeconds: idle }),
    ...(drain === undefined ? {} : { drainSeconds: drain }),
    ...(choices.pageUrl === undefined ? {} : { pageUrl: choices.pageUrl }),
  })
  const { url } = gateway
  terminal.write(
    choices.json === true
      ? `${formatJson({ url, openaiUrl: `${url}/v1` })}\n`
      : formatGreeting(url, database === undefined ? null : (choices.pageUrl ?? url)),
  )
  await waitForInterruption(terminal)
  if (choices.json !== true && gateway.running > 0)
    terminal.write(
      `Waiting for ${formatCount(gateway.running, 'answer')} to end; Ctrl-C again ends at once.\n`,
    )
  await gateway.close()
  return EXIT_CODES.done
}

function formatGreeting(url: string, page: string | null): string {
  return [
    page !== null
      ? 'Serving sessions, keys and budgets from Postgres. Keys: tidemark gateway keys add NAME --database URL.'
      : 'Serving one process on files, without keys: callers send their own credentials. For a team, give --database.',
    `  ANTHROPIC_BASE_URL=${url} ANTHROPIC_API_KEY=KEY your-agent`,
    `  OPENAI_BASE_URL=${url}/v1 OPENAI_API_KEY=KEY your-agent`,
    ...(page === null ? [] : [`Sessions and costs, for everyone with a key: ${page}`]),
    '',
  ].join('\n')
}

function printLogLine(line: GatewayLogLine, { json }: GatewayCommandOptions, terminal: Terminal): void {
  const at = new Date().toISOString()
  terminal.warn(
    json === true
      ? `${formatJson({ at, ...line })}\n`
      : `${at} ${line.level} ${line.event}: ${toSafeLine(line.message)}\n`,
  )
}

/** Runs `work` on the database, after creating missing tables. A database error is printed as one line. */
async function withDatabase(
  url: string,
  terminal: Terminal,
  work: (pool: ReturnType<typeof openDatabase>) => Promise<number>,
): Promise<number> {
  const pool = openDatabase(url, { connections: 2 })
  try {
    await migrateDatabase(pool)
    return await work(pool)
  } catch (thrown) {
    if (thrown instanceof Error && thrown.name === 'TidemarkError') throw thrown
    return printError(describeDatabaseError(thrown), terminal)
  } finally {
    await pool.end().catch(() => {})
  }
}

function findActor({ env }: Terminal): string {
  try {
    return userInfo().username
  } catch {
    return env.USER ?? 'unknown'
  }
}

export async function addGatewayKey(
  name: string,
  choices: AddKeyOptions,
  terminal: Terminal,
): Promise<number> {
  const { database, budget, period, models, team, viewer, json } = choices
  return withDatabase(database, terminal, async (pool) => {
    const { key } = await addKey(pool, {
      name,
      actor: findActor(terminal),
      ...(budget === undefined ? {} : { budget }),
      ...(period === undefined ? {} : { period: period as Period }),
      ...(models === undefined ? {} : { models }),
      ...(team === undefined ? {} : { team }),
      ...(viewer === undefined ? {} : { isViewer: viewer }),
    })
    terminal.write(json === true ? `${formatJson({ key })}\n` : `${key}\n`)
    return EXIT_CODES.done
  })
}

export async function printGatewayKeys(
  { database, json }: DatabaseOptions,
  terminal: Terminal,
): Promise<number> {
  return withDatabase(database, terminal, async (pool) => {
    const keys = await listKeys(pool)
    if (json === true) terminal.write(`${formatJson({ keys })}\n`)
    else if (keys.length === 0) terminal.warn('No keys.\n')
    else terminal.write(`${renderKeys(keys, terminal).join('\n')}\n`)
    return EXIT_CODES.done
  })
}

function renderKeys(keys: readonly ListedKey[], terminal: Terminal): readonly string[] {
  return renderTable(
    keys,
    [
      { title: 'name', text: ({ name }) => name },
      { title: 'key', text: ({ hint }) => `${hint}…` },
      { title: 'spent', align: 'right', text: ({ spent }) => formatDollars(spent) },
      {
        title: 'budget',
        align: 'right',
        text: ({ budget, period }) => (budget === null ? '-' : `${formatDollars(budget)} a ${period}`),
      },
      { title: 'team', text: ({ team }) => team ?? '-' },
      {
        title: 'models',
        text: ({ models, isViewer }) => (isViewer ? 'none: opens the page' : (models?.join(' ') ?? 'all')),
      },
      { title: '', text: ({ isRevoked }) => (isRevoked ? 'revoked' : '') },
    ],
    createScreen(terminal),
  )
}

export async function revokeGatewayKey(
  name: string,
  { database }: DatabaseOptions,
  terminal: Terminal,
): Promise<number> {
  return withDatabase(database, terminal, async (pool) => {
    await revokeKey(pool, name, findActor(terminal))
    terminal.warn(`Revoked ${toSafeLine(name)}.\n`)
    return EXIT_CODES.done
  })
}

export async function deleteGatewaySession(
  { key, session }: { readonly key: string; readonly session: string },
  { database }: DatabaseOptions,
  terminal: Terminal,
): Promise<number> {
  return withDatabase(database, terminal, async (pool) => {
    const owners = (await listKeys(pool)).filter(({ name }) => name === key.normalize())
    for (const { id: scope } of owners) {
      const deleted = await deleteSession(pool, { scope, session, actor: findActor(terminal) })
      if (deleted === null) continue
      terminal.warn(
        `Deleted ${formatCount(deleted.lines, 'line')} and ${formatCount(deleted.blobs, 'blob')}.\n`,
      )
      return EXIT_CODES.done
    }
    return printError(
      owners.length === 0
        ? `There is no key named ${key}: see tidemark gateway keys list.`
        : `The key ${key} has no session ${session}, or a request of it is being answered: try again.`,
      terminal,
    )
  })
}

export async function printGatewayAudit(
  { database, json }: DatabaseOptions,
  terminal: Terminal,
): Promise<number> {
  return withDatabase(database, terminal, async (pool) => {
    const audit = await listAudit(pool, 1_000)
    if (json === true) terminal.write(`${formatJson({ audit })}\n`)
    else
      for (const { at, actor, action, subject, details = '' } of audit)
        terminal.write(`${at} ${toSafeLine(`${actor} ${action} ${subject} ${details}`)}\n`)
    return EXIT_CODES.done
  })
}

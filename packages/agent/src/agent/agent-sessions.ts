/** Chooses the session and the model of an agent: a new session, a resumed one, or the newest one of a folder; and the API. */

import { randomBytes } from 'node:crypto'
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { anthropic, compatible, type ModelChoice, openai, TidemarkError } from 'tidemark'
import { lookUpModel, modelCatalogue } from 'tidemark/catalogue'
import { hasSession, isSessionId, readLog, sessionPaths } from 'tidemark/logs'
import { quoteForShell } from '../tools/shell-process.ts'
import type { AgentOptions } from './agent-options.ts'
import type { AgentSettings } from './settings.ts'

/** The model and the API that the user has chosen on the command line. */
export interface ModelOptions {
  readonly model?: string
  readonly baseUrl?: string
  readonly window?: number
}

const DEFAULT_MODEL = 'claude-sonnet-5-5'

/**
 * Creates the model that the command line, the settings or the environment names, else the default: at OpenAI if the catalogue
 * lists it there, at a compatible server if the address on the command line ends in `/v1`, otherwise at Anthropic. Throws a
 * `TidemarkError`, with advice for the user, if the key is missing or the window is not known.
 */
export function chooseModel(
  options: ModelOptions,
  settings: AgentSettings,
  { env }: Pick<AgentOptions, 'env'>,
): ModelChoice {
  const id = options.model ?? settings.model ?? env.ANTHROPIC_MODEL ?? DEFAULT_MODEL
  const isOpenai = isOpenaiModel(id)
  try {
    if (isOpenai) return createOpenaiChoice(id, options, env)
    if (/\/v1\/?$/.test(options.baseUrl ?? '')) return createLocalChoice(id, options, env)
    return createAnthropicChoice(id, options, env)
  } catch (error) {
    throw describeModelError(error, id, env, isOpenai ? OPENAI_KEY_ADVICE : ANTHROPIC_KEY_ADVICE)
  }
}

type Environment = AgentOptions['env']

function isOpenaiModel(id: string): boolean {
  const found = lookUpModel(modelCatalogue, id)
  return found.found && found.model.vendor === 'openai'
}

const isSet = (value: string | undefined): value is string => value !== undefined && value !== ''

function createAnthropicChoice(id: string, { baseUrl, window }: ModelOptions, env: Environment): ModelChoice {
  const url = baseUrl ?? env.ANTHROPIC_BASE_URL
  const { ANTHROPIC_API_KEY: apiKey, ANTHROPIC_AUTH_TOKEN: authToken } = env
  const credentials = isSet(apiKey) ? { apiKey } : isSet(authToken) ? { authToken } : {}
  const hasKey = Object.keys(credentials).length > 0
  return anthropic(id, {
    ...credentials,
    ...(hasKey ? {} : createLocalKey(url)),
    ...(isSet(url) ? { baseUrl: url } : {}),
    ...(window === undefined ? {} : { window }),
  })
}

function createOpenaiChoice(id: string, { baseUrl, window }: ModelOptions, env: Environment): ModelChoice {
  const url = baseUrl ?? env.OPENAI_BASE_URL
  const key = env.OPENAI_API_KEY
  return openai(id, {
    ...(isSet(key) ? { apiKey: key } : createLocalKey(url)),
    ...(isSet(url) ? { baseUrl: url } : {}),
    ...(window === undefined ? {} : { window }),
  })
}

/** Creates the model of a server that speaks Chat Completions. The user must give its window, which only the server knows. */
function createLocalChoice(
  id: string,
  { baseUrl = '', window }: ModelOptions,
  env: Environment,
): ModelChoice {
  if (window === undefined)
    throw new TidemarkError(
      'bad-option',
      `the window of ${id} at ${withoutCredentials(baseUrl)} is not known: give --window TOKENS, as the server is set up`,
    )
  const key = env.OPENAI_API_KEY
  // The OpenAI key is not sent to a server on this machine.
  return compatible(id, { baseUrl, window, ...(isSet(key) && !isLoopback(baseUrl) ? { apiKey: key } : {}) })
}

/** Returns a placeholder key for a server on this machine, such as tidemark simulate, which needs none. */
function createLocalKey(url: string | undefined): { readonly apiKey?: string } {
  return isSet(url) && isLoopback(url) ? { apiKey: 'none' } : {}
}

/** The options of the command line with which a session was started. */
interface StartOptions extends ModelOptions {
  readonly permissionMode?: string
  readonly allowedTools?: readonly string[]
  readonly appendSystemPrompt?: string
  readonly cwd?: string
}

/**
 * Returns the command line that continues a session, with the options it was started with. These are not stored with the session,
 * so that no permission outlasts its run. User name, password and query of an address are left out. `more`: further options.
 */
export function formatResumeCommand(
  id: string,
  options: StartOptions,
  {
    more = '',
    env = {},
  }: { readonly more?: string; readonly env?: Readonly<Record<string, string | undefined>> } = {},
): string {
  const { model, baseUrl, window, permissionMode, allowedTools = [], appendSystemPrompt, cwd } = options
  const given: Readonly<Record<string, string | number | undefined>> = {
    model,
    'base-url': baseUrl === undefined ? undefined : withoutCredentials(baseUrl),
    window,
    'permission-mode': permissionMode,
    'append-system-prompt': appendSystemPrompt,
    cwd,
  }
  const flags = Object.entries(given).flatMap(([name, value]) =>
    value === undefined ? [] : [`--${name} ${toShellWord(String(value))}`],
  )
  const rules =
    allowedTools.length === 0 ? [] : [`--allowed-tools ${allowedTools.map(toShellWord).join(' ')}`]
  return [`${nameProgram(env)} chat --resume ${id}`, ...(more === '' ? [] : [more]), ...flags, ...rules].join(
    ' ',
  )
}

/** Returns the name of the program to type. If npx started it, the program is not on the PATH. */
function nameProgram(env: AgentOptions['env']): string {
  return env.npm_command === 'exec' ? 'npx tidemark' : 'tidemark'
}

function withoutCredentials(url: string): string {
  if (!URL.canParse(url)) return url
  const { username, password, search, hash } = new URL(url)
  const isPlain = username === '' && password === '' && search === '' && hash === ''
  const { protocol, host, pathname } = new URL(url)
  return isPlain ? url : `${protocol}//${host}${pathname === '/' ? '' : pathname}`
}

function toShellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : quoteForShell(text)
}

/** Rewords an error of the library about the session's model for users of the command line. Other errors stay unchanged. */
function describeModelError(
  error: unknown,
  model: string,
  env: AgentOptions['env'],
  keyAdvice: KeyAdvice,
): unknown {
  if (!(error instanceof TidemarkError)) return error
  const { option } = error.details
  if (option === 'model') {
    const text = `the model ${model} is not in the catalogue: give --window TOKENS, or another --model`
    return new TidemarkError(error.code, text, { cause: error })
  }
  if (option !== 'apiKey') return error
  const text = 'no key for the provider. Type one of these; two need no key:'
  return new TidemarkError(error.code, text, {
    cause: error,
    details: { advice: listKeyAdvice(env, keyAdvice) },
  })
}

type KeyAdvice = readonly [command: string, comment: string]

const ANTHROPIC_KEY_ADVICE: KeyAdvice = ['export ANTHROPIC_API_KEY=…', 'from https://console.anthropic.com']
const OPENAI_KEY_ADVICE: KeyAdvice = ['export OPENAI_API_KEY=…', 'from https://platform.openai.com']

/** Returns advice on what to type if there is no key. Each line fits 80 columns, because a wrapped line cannot be copied. */
function listKeyAdvice(env: AgentOptions['env'], keyAdvice: KeyAdvice): readonly string[] {
  const program = nameProgram(env)
  const advice = [
    [`${program} tour --resume`, "the tour's session (tour makes one)"],
    [`${program} simulate --script fix`, 'plays the model; prints what to type'],
    keyAdvice,
  ] as const
  const width = Math.max(...advice.map(([command]) => command.length))
  return advice.map(([command, comment]) => `${command.padEnd(width)}  # ${comment}`)
}

function isLoopback(url: string): boolean {
  return URL.canParse(url) && /^(127\.|localhost$|\[::1\]$)/.test(new URL(url).hostname)
}

/** The file with which `--continue` finds the sessions of a folder. */
interface AgentFacts {
  readonly folder: string
}

const FACTS_FILE = 'agent.json'

/** Reads the facts about a session; empty if the session has none, for example because a program made it with the library. */
async function readAgentFacts(home: string, id: string): Promise<Partial<AgentFacts>> {
  try {
    const { folder } = JSON.parse(await readFile(join(sessionPaths(home, id).folder, FACTS_FILE), 'utf8'))
    return typeof folder === 'string' ? { folder } : {}
  } catch {
    return {}
  }
}

/** Stores the working directory of a session, so that `--continue` finds it there. */
export async function storeWorkingFolder(home: string, id: string, folder: string): Promise<void> {
  const { folder: own } = sessionPaths(home, id)
  await mkdir(own, { recursive: true, mode: 0o700 })
  const facts: AgentFacts = { folder }
  await writeFile(join(own, FACTS_FILE), `${JSON.stringify(facts)}\n`, { mode: 0o600 })
}

/**
 * Returns the id of the session to use (the one to resume, the newest one of this folder, or a new one), or why there is none.
 */
export async function chooseSessionId(
  { resume, continue: isContinued }: { readonly resume?: string; readonly continue?: boolean },
  home: string,
  folder: string,
): Promise<ChosenSession | { readonly problem: string }> {
  if (resume !== undefined) {
    if (isSessionId(resume) && (await hasSession(home, resume))) {
      const { folder: own } = await readAgentFacts(home, resume)
      if (own === undefined) return { id: resume, notice: await describeOtherFolder(home, resume, folder) }
      if (own === folder) return { id: resume, notice: null }
      return { problem: `the session ${resume} belongs to ${own}. Go on there, or give --cwd ${own}.` }
    }
    return { problem: `there is no session ${resume}. tidemark sessions lists them.` }
  }
  if (isContinued !== true) return { id: createSessionId(), notice: null }
  const newest = await findNewestSession(home, folder)
  return newest === null
    ? {
        problem: `there is no session of this folder to continue: ${folder}. Leave --continue out to begin one.`,
      }
    : { id: newest, notice: null }
}

interface ChosenSession {
  readonly id: string
  /** A sentence for the user about the session; null if none is needed. */
  readonly notice: string | null
}

/** Returns a notice if a session without agent facts, such as a copy by `tidemark compact`, has records of another folder. */
async function describeOtherFolder(home: string, id: string, folder: string): Promise<string | null> {
  const read = await readLog(sessionPaths(home, id).log, { withAgents: false })
  const own = read.ok
    ? read.records.findLast(({ record }) => record.cwd !== undefined)?.record.cwd
    : undefined
  if (own === undefined || own === folder) return null
  return `The session ${id} was in ${own}, and goes on in ${folder}: paths in it may not be here. To go on there: --cwd ${quoteForShell(own)}`
}

/** Creates the id of a new session: its date, so that lists are sorted by date, and a random part. */
export function createSessionId(): string {
  const date = new Date().toISOString().slice(0, 19).replaceAll(/[-:]/g, '').replace('T', '-')
  return `chat-${date}-${randomBytes(3).toString('hex')}`
}

async function findNewestSession(home: string, folder: string): Promise<string | null> {
  return (await listFolderSessions(home, folder))[0]?.id ?? null
}

/** Lists the sessions of a folder, the newest first. `at`: when it was last written, in milliseconds since 1970. */
export async function listFolderSessions(
  home: string,
  folder: string,
): Promise<readonly { readonly id: string; readonly at: number }[]> {
  const names = await readdir(join(home, 'sessions')).catch(() => [])
  const ids = names.filter((name) => name.endsWith('.jsonl')).map((name) => name.slice(0, -'.jsonl'.length))
  const found = await Promise.all(
    ids.filter(isSessionId).map(async (id) => {
      const { log } = sessionPaths(home, id)
      if ((await readAgentFacts(home, id)).folder !== folder) return []
      return [{ id, at: (await stat(log)).mtimeMs }]
    }),
  )
  return found.flat().sort((a, b) => b.at - a.at)
}

/**
 * What the golden sessions need from the packages beyond `createTidemark` and `createSimulator`. Names that a
 * restructuring may change are imported here and nowhere else.
 */
import crypto from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { dirname, join } from 'node:path'
import { main } from '@tidemark/cli'
import {
  SYSTEM_PROMPT_DYNAMIC_BOUNDARY as BOUNDARY,
  section,
  volatileSection,
} from '@tidemark/core/request/system-prompt'
import { hostSource, planModeSource, skillsSource, todosSource } from '@tidemark/core/sources/builtin-sources'
import { createSummarizer, type Script } from '@tidemark/simulator'
import { BAD_SUMMARIZERS, createModelTable, type SimulatedModel } from '@tidemark/simulator/internal'
import { diskSources, type ModelChoice, type TidemarkOptions } from 'tidemark'

export const START = Date.UTC(2026, 10, 20, 9, 0, 0)

export interface FixedClock {
  now(): number
  sleep(ms: number, signal?: { readonly aborted: boolean }): Promise<void>
  advance(ms: number): void
}

/** Longer than any delay before a retry: whoever sleeps as long waits for a deadline. */
const DEADLINE_MS = 10_000

/** Time passes only between steps: a delay before a retry ends at once, and no deadline is ever reached. */
export function createFixedClock(): FixedClock {
  let now = START
  return {
    now: () => now,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        if (ms < DEADLINE_MS || signal?.aborted === true) setImmediate(resolve)
        else if (signal instanceof AbortSignal)
          signal.addEventListener('abort', () => resolve(), { once: true })
      }),
    advance: (ms) => {
      now += ms
    },
  }
}

/** UUIDs that count up, whatever they are for. */
export function createFixedIds(): { next(): `${string}-${string}-${string}-${string}-${string}` } {
  let count = 0
  return {
    next() {
      count += 1
      return `0a1b2c3d-0000-4000-8000-${String(count).padStart(12, '0')}`
    },
  }
}

/** State around a conversation that the steps change. */
export interface HostState {
  branch: string
  board: readonly string[]
  isPlanning: boolean
  readonly folder: string
}

export type SystemKind = 'none' | 'text' | 'sections'

export function systemFor(kind: SystemKind, host: HostState): Pick<TidemarkOptions, 'system'> {
  if (kind === 'none') return {}
  if (kind === 'text') return { system: 'You are a coder. You change only what was asked for.' }
  const sections = [
    section('rules', () => `Be exact. Never guess a path. ${'Read before you edit. '.repeat(40)}`),
    BOUNDARY,
    section('environment', () => 'Shell: bash. Folder: the root of the repository shop.'),
    volatileSection('git', () => `Branch: ${host.branch}`, 'the branch changes under way'),
  ]
  return { system: { attribution: 'billing: golden', identity: 'You are a coder.', sections } }
}

/** State that comes back after a compaction: disk files, todos, plan mode, a skill, and the host's own. */
export function carriersFor(host: HostState): Pick<TidemarkOptions, 'carriers'> {
  const { folder } = host
  return {
    carriers: [
      ...diskSources({ folder, planFile: () => 'plan.md', standing: () => ['CLAUDE.md'] }),
      todosSource(),
      planModeSource(() => host.isPlanning),
      skillsSource(() => [{ name: 'release', text: 'Tag the commit. Then write the notes.' }]),
      hostSource({ name: 'board', read: () => host.board.map((text) => ({ text })) }),
    ],
  }
}

export const HOOKS: Pick<TidemarkOptions, 'hooks'> = {
  hooks: {
    preCompact: [{ name: 'tickets', run: () => ({ newCustomInstructions: 'Keep all ticket numbers.' }) }],
    sessionStart: [{ name: 'branch', run: () => ({ additionalContext: 'On branch main.' }) }],
    postCompact: [{ name: 'notes', run: () => ({ additionalContext: 'The summary was checked.' }) }],
  },
}

/** The model with the undocumented cache edits declared, which no catalogue entry has. */
export function withCacheEdits(choice: ModelChoice): ModelChoice {
  const { profile } = choice
  return { ...choice, profile: { ...profile, capabilities: { ...profile.capabilities, cacheEdits: true } } }
}

/** A model that no catalogue knows, as the simulator plays it. */
export function simulateLocalModel(id: string): readonly SimulatedModel[] {
  const like = createModelTable().find('claude-3-haiku')
  return like === undefined ? [] : [{ ...like, id, aliases: [] }]
}

/** Who answers requests for a summary: well, with parts left out, or wrong. */
export const SUMMARISERS = {
  good: createSummarizer(),
  forgetful: createSummarizer({ forget: ['src/', 'Please'], omit: [7], tags: 'unclosed' }),
  empty: BAD_SUMMARIZERS.empty,
  injection: BAD_SUMMARIZERS.injection,
  'cut-off': BAD_SUMMARIZERS['cut-off'],
} satisfies Readonly<Record<string, Script>>

/** Files that stand for the user's project: the ones that the scripted model reads and edits. */
export function writeProject(folder: string): void {
  const files: Readonly<Record<string, string>> = {
    'CLAUDE.md': 'Amounts are in cents.\n',
    'plan.md': '# Plan\n1. Find the sum.\n2. Fix it.\n',
    'src/orders.ts': `export const cents = (n: number) => Math.round(n * 100)\n${'// order\n'.repeat(40)}`,
    'src/login.ts': `export const login = () => false\n${'// login\n'.repeat(300)}`,
  }
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
}

/**
 * Runs `tidemark …` in this process, away from the user's own folders. Gives exit code and both outputs. Commands
 * take neither ids nor a clock, estimates depend on the digits of an id and prices on the day: while one runs, ids
 * count up and time stands still.
 */
export async function runCommand(args: readonly string[], home: string): Promise<string> {
  const { randomUUID } = crypto
  const { now } = Date
  const ids = createFixedIds()
  Date.now = () => START
  crypto.randomUUID = () => ids.next()
  syncBuiltinESMExports()
  try {
    return await runMain(args, home)
  } finally {
    Date.now = now
    crypto.randomUUID = randomUUID
    syncBuiltinESMExports()
  }
}

async function runMain(args: readonly string[], home: string): Promise<string> {
  let output = ''
  let errors = ''
  const code = await main(args, {
    write: (text) => {
      output += text
    },
    warn: (text) => {
      errors += text
    },
    env: { HOME: home, TIDEMARK_HOME: join(home, 'tidemark') },
    isTty: false,
    columns: 100,
  })
  return `exit ${code}\n${output}${errors}`
}

/** `tidemark simulate`: serves the simulated APIs until interrupted, and prints a line for each request. */

import { FIX_SCENARIO_PATH, SAMPLE_PROJECT_PATH } from '@tidemark/agent/sample'
import {
  formatRequestLine,
  loadScenario,
  type Script,
  type SimulatorOptions,
  serve,
} from '@tidemark/simulator'
import { formatJson } from '@tidemark/terminal/render/json-output'
import { printError } from '@tidemark/terminal/render/print-errors'
import { toSafeLine } from '@tidemark/terminal/render/text'
import type { Terminal } from '@tidemark/terminal/terminal'
import { EXIT_CODES, waitForInterruption } from '@tidemark/terminal/terminal'

export interface SimulateCommandOptions {
  readonly port?: number
  readonly host?: string
  readonly allowRemote?: boolean
  readonly script?: string
  readonly window?: number
  readonly seed?: string
  readonly cachedClearing?: boolean
  readonly keepRequests?: number
  /** Maximum megabytes of a request. */
  readonly maxBody?: number
  /** Settings as `name=value,name=value`. */
  readonly binding?: string
  readonly cacheKey?: string
  readonly rules?: string
  readonly openai?: string
  readonly json?: boolean
}

/** Number of requests kept without `--keep-requests`. */
const KEPT_REQUESTS = 200

/** Delay before the first byte of a response, so that requests sent together overlap as with a real provider. */
const FIRST_BYTE_MS = 5

export async function runSimulateCommand(
  choices: SimulateCommandOptions,
  terminal: Terminal,
): Promise<number> {
  const { port, host, allowRemote, window, seed, cachedClearing, keepRequests = KEPT_REQUESTS } = choices
  const settings = readSettings(choices)
  const maxBodyBytes = choices.maxBody === undefined ? undefined : choices.maxBody * 1_000_000
  if (typeof settings === 'string') {
    printError(settings, terminal)
    return EXIT_CODES.wrongUse
  }
  const { script = 'echo' } = choices
  const loaded = await loadScenario(script === 'fix' ? FIX_SCENARIO_PATH : script)
  if (!loaded.ok) {
    terminal.warn(`tidemark: ${loaded.message}\n`)
    return EXIT_CODES.failed
  }
  const served = await serve({
    script: loaded.script satisfies Script,
    firstByteMs: FIRST_BYTE_MS,
    ...omitUndefined({ port, host, allowRemote, window, seed, cachedClearing, keepRequests, maxBodyBytes }),
    ...settings,
    onRequest: (record) => {
      if (choices.json === true) return
      terminal.write(`${sanitizeLine(formatRequestLine(record))}\n`)
      if (record.number === keepRequests + 1)
        terminal.write(
          `Only the newest ${keepRequests} requests are kept (--keep-requests). Totals count all.\n`,
        )
    },
  })
  terminal.write(
    choices.json === true
      ? `${formatJson({ url: served.url, openaiUrl: `${served.url}/v1` })}\n`
      : formatGreeting(served.url, choices),
  )
  await waitForInterruption(terminal)
  await served.close()
  return EXIT_CODES.done
}

/** Makes a line safe to print whose parts have two spaces between them, which `toSafeLine` would join to one. */
function sanitizeLine(line: string): string {
  return line.split('  ').map(toSafeLine).join('  ')
}

type SettingGroups = Required<Pick<SimulatorOptions, 'binding' | 'cacheKey' | 'rules' | 'openai'>>

const YES_OR_NO = ['true', 'false']

/** The settings of each group, with their allowed values. */
const SETTINGS: {
  readonly [G in keyof SettingGroups]: { readonly [N in keyof Required<SettingGroups[G]>]: readonly string[] }
} = {
  binding: { enforced: YES_OR_NO, editedText: ['error', 'allow'], foreignSignatures: ['error', 'allow'] },
  cacheKey: {
    speed: YES_OR_NO,
    outputFormat: YES_OR_NO,
    betas: YES_OR_NO,
    contextManagement: YES_OR_NO,
    ttl: YES_OR_NO,
  },
  rules: { firstRole: ['user', 'any'] },
  openai: {
    dialect: ['openai', 'openrouter', 'deepseek', 'kimi', 'vllm', 'ollama', 'llama.cpp'],
    overflow: ['status', 'error-event', 'flat-error-event', 'failed-event'],
  },
}

const OPTION_NAMES = {
  binding: '--binding',
  cacheKey: '--cache-key',
  rules: '--rules',
  openai: '--openai',
} as const

/** Reads the groups of settings, such as `betas=false,ttl=true`. Returns an error text instead if a name or value is unknown. */
function readSettings(choices: SimulateCommandOptions): Partial<SettingGroups> | string {
  const read: Record<string, Record<string, string | boolean>> = {}
  for (const group of Object.keys(SETTINGS) as (keyof SettingGroups)[]) {
    const known = new Map<string, readonly string[]>(Object.entries(SETTINGS[group]))
    const pairs = (choices[group] ?? '').split(',').filter((pair) => pair.trim() !== '')
    for (const pair of pairs) {
      const [name = '', value = ''] = pair.split('=').map((part) => part.trim())
      if (known.get(name)?.includes(value) !== true) {
        const choicesOf = [...known].map(([each, values]) => `${each}=${values.join('|')}`)
        return `option '${OPTION_NAMES[group]}': expected ${choicesOf.join(', ')}; found ${pair.trim()}`
      }
      read[group] = { ...read[group], [name]: YES_OR_NO.includes(value) ? value === 'true' : value }
    }
  }
  // The cast is safe because the table has every setting with its allowed values.
  return read as Partial<SettingGroups>
}

function formatGreeting(url: string, choices: SimulateCommandOptions): string {
  return [
    `The Messages API, Responses and Chat Completions are simulated at ${url} (script: ${choices.script ?? 'echo'}). Press Ctrl-C to stop.`,
    `  ANTHROPIC_BASE_URL=${url} ANTHROPIC_API_KEY=any your-agent`,
    `  OPENAI_BASE_URL=${url}/v1 OPENAI_API_KEY=any your-agent`,
    ...(choices.script === 'fix'
      ? [`  cp -r ${toSafeLine(SAMPLE_PROJECT_PATH)} till && cd till && npx tidemark chat --base-url ${url}`]
      : []),
    `  ${url}/_simulator/requests   the newest ${choices.keepRequests ?? KEPT_REQUESTS} requests, with their cache use and cost`,
    `  ${url}/_simulator            totals of all requests`,
    '',
    '',
  ].join('\n')
}

function omitUndefined<T extends object>(choices: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const present = Object.entries(choices).filter(([, value]) => value !== undefined)
  return Object.fromEntries(present) as { [K in keyof T]?: Exclude<T[K], undefined> }
}
